use longhaul_engine::Failure;
use longhaul_wire::resource::{ResourceContent, ResourceContents};

/// Something that the function of a resource can return: a text, bytes, a [`ResourceContent`], several of them as
/// [`ResourceContents`], or an `Option` of any of these.
pub trait IntoResourceContents {
    /// The contents; `None` if there is no such resource.
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure>;
}

impl IntoResourceContents for ResourceContents {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        Ok(Some(self))
    }
}

impl IntoResourceContents for ResourceContent {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        Ok(Some(self.into()))
    }
}

impl IntoResourceContents for String {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        ResourceContent::text(self).into_contents()
    }
}

impl IntoResourceContents for &str {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        ResourceContent::text(self).into_contents()
    }
}

impl IntoResourceContents for Vec<u8> {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        ResourceContent::blob(self).into_contents()
    }
}

impl<T: IntoResourceContents> IntoResourceContents for Option<T> {
    fn into_contents(self) -> Result<Option<ResourceContents>, Failure> {
        match self {
            Some(contents) => contents.into_contents(),
            None => Ok(None),
        }
    }
}
