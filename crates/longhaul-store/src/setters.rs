//! Methods that set the fields of limits and options.

/// Gives a `#[non_exhaustive]` struct one method per field that sets it: `Limits::default().connections_max(100)`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($name:ident { $($field:ident: $value:ty),+ $(,)? }) => {
        impl $name {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
                pub fn $field(mut self, $field: $value) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
