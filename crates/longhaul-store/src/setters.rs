//! Methods that set the fields of limits and options.

/// Gives a `#[non_exhaustive]` struct one method per field that sets it: `ServerLimits::default().connections_max(100)`.
///
/// It is in this crate because it is the first one with options, and every crate with limits depends on it. A derive macro
/// would add a dependency for six structs.
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
