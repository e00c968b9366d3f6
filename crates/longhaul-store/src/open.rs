//! Why a store cannot be opened.

/// Why a store cannot be opened, by what the caller can do about it. Nothing in the store was changed.
///
/// `store` is the path of a file or the address of a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum OpenError {
    /// Another process has the store, and only one at a time can. Stop that process, or open another store.
    #[error("the store {store} is in use by {holder}")]
    InUse { store: String, holder: String },
    /// A newer version of this program wrote the store. Open it with that version.
    #[error(
        "the store {store} has version {found}; this program supports versions up to {known}, so open it with a newer one"
    )]
    Newer { store: String, found: u32, known: u32 },
    /// The file is not a database. Choose another path.
    #[error("{store} is not a database")]
    NotADatabase { store: String },
    /// The database belongs to another program. Choose another path.
    #[error("the database {store} belongs to another program")]
    Foreign { store: String },
    /// A directory has this name. Choose a file in it.
    #[error("{store} is a directory; a store is a file, such as {suggestion}")]
    Directory { store: String, suggestion: String },
    /// The directory of the file does not exist. Create it, or correct the path.
    #[error("there is no directory {directory} for the store {store}")]
    NoDirectory { store: String, directory: String },
    /// There is no store to read. Correct the path, or start a server, which creates the store.
    #[error("there is no store {store}")]
    Missing { store: String },
    /// The file exists and is empty. Start a server, which turns it into a store.
    #[error("the file {store} is empty; it becomes a store when a server opens it")]
    Empty { store: String },
    /// The content of the store is wrong. Restore a backup.
    #[error("the store {store} is damaged: {cause}")]
    Damaged { store: String, cause: String },
    /// The system denies access. Change the permissions, or run as another user.
    #[error("the store {store} may not be opened by this user: {cause}")]
    Permission { store: String, cause: String },
    /// The file system is read-only.
    #[error("the store {store} is on a file system that is read-only")]
    ReadOnly { store: String },
    /// There is no space left. Free some space, then try again.
    #[error("there is no space left to open the store {store}: {cause}")]
    Full { store: String, cause: String },
    /// This build does not contain the backend. Enable its feature.
    #[error("this build cannot open the store {store}: it was built without {backend}")]
    NotBuiltIn { store: String, backend: &'static str },
    /// The backend cannot do this: a store in memory, for example, cannot be opened by a second process.
    #[error("the store {store} cannot be opened like this: {cause}")]
    Unsupported { store: String, cause: &'static str },
    /// Any other failure. Try again if the cause is temporary.
    #[error("the store {store} could not be opened: {cause}")]
    Failed { store: String, cause: String },
}

impl OpenError {
    /// A stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "STORE_LOCKED",
            Self::Newer { .. } => "STORE_NEWER",
            Self::NotADatabase { .. } => "STORE_NOT_A_DATABASE",
            Self::Foreign { .. } => "STORE_FOREIGN",
            Self::Directory { .. } => "STORE_IS_A_DIRECTORY",
            Self::NoDirectory { .. } => "STORE_NO_DIRECTORY",
            Self::Missing { .. } => "STORE_MISSING",
            Self::Empty { .. } => "STORE_EMPTY",
            Self::Damaged { .. } => "STORE_DAMAGED",
            Self::Permission { .. } => "STORE_PERMISSION",
            Self::ReadOnly { .. } => "STORE_READ_ONLY",
            Self::Full { .. } => "STORE_FULL",
            Self::NotBuiltIn { .. } => "NOT_BUILT_IN",
            Self::Unsupported { .. } => "STORE_UNSUPPORTED",
            Self::Failed { .. } => "STORE_OPEN_FAILED",
        }
    }
}
