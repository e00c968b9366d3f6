//! Token files: lines of `OWNER SHA256-OF-TOKEN`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use longhaul::{Owner, TokenFile, Tokens};
use rand::RngExt;

use crate::exit::CommandError;
use crate::output::stderr_line;

/// The owner of the token that a new file begins with.
const FIRST_OWNER: &str = "owner";

/// Opens a token file. If there is none, it is created with one token, which is shown once.
pub(crate) fn open(path: &Path) -> Result<TokenFile, CommandError> {
    if std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let owner = Owner::parse(FIRST_OWNER).map_err(|error| failed(path, &error))?;
        let token = add(path, &owner)?;
        stderr_line!("{} is new. Its token is shown this once; only its hash is kept:\n  {token}", path.display());
    }
    let tokens = TokenFile::open(path).map_err(|error| failed(path, &error))?;
    if tokens.is_empty() {
        return Err(failed(
            path,
            &"it has no tokens; add one with `longhaul token new`, or remove the file to get a new one",
        ));
    }
    if std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
        tracing::warn!(file = %path.display(), "other users can read or change the token file; run `chmod 600` on it");
    }
    Ok(tokens)
}

/// Adds a new token for an owner and returns it. The file, which is created if there is none, contains only its hash.
pub(crate) fn add(path: &Path, owner: &Owner) -> Result<String, CommandError> {
    let name = owner.as_str();
    // The line would be read as a comment or as another owner's.
    if name.starts_with('#') || name.trim() != name {
        return Err(CommandError::Usage(format!("{name:?} cannot be the name of an owner in a token file")));
    }
    if Tokens::is_reserved(owner) {
        let why = "the server's own name for callers without a token; choose another for this owner";
        return Err(CommandError::Usage(format!("{name:?} is {why}")));
    }
    let token = format!("{:032x}{:032x}", rand::rng().random::<u128>(), rand::rng().random::<u128>());
    let before = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(path, &error)),
    };
    // Nothing is appended to a file that is not a token file.
    Tokens::parse(&before).map_err(|error| failed(path, &error))?;
    let start = match before.as_str() {
        "" => "# OWNER SHA256-OF-TOKEN, one a line\n",
        text if text.ends_with('\n') => "",
        _ => "\n",
    };
    let line = format!("{start}{}\n", Tokens::line(owner, &token));
    append(path, &line).map_err(|error| failed(path, &error))?;
    Ok(token)
}

/// Removes all tokens of an owner and returns how many they were. The other lines stay as they are.
pub(crate) fn revoke(path: &Path, owner: &Owner) -> Result<usize, CommandError> {
    let before = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
    let (after, revoked) = Tokens::without(&before, owner).map_err(|error| failed(path, &error))?;
    if revoked == 0 {
        return Err(CommandError::NoSuchToken { path: path.display().to_string(), owner: owner.to_string() });
    }
    replace(path, &after).map_err(|error| failed(path, &error))?;
    Ok(revoked)
}

/// Replaces a file by a rename: a server that reads it meanwhile, and a crash, find the whole of one or of the other.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // If it is a link, the file that it points to is replaced.
    let path = path.canonicalize()?;
    let mut name = path.clone().into_os_string();
    name.push(".new");
    let new = Path::new(&name);
    // Left by a process that was killed here.
    let _ = std::fs::remove_file(new);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        file.set_permissions(std::fs::metadata(&path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(new, &path)
    })();
    if written.is_err() {
        // The caller gets the error of the replacement.
        let _ = std::fs::remove_file(new);
    }
    written
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

fn failed(path: &Path, cause: &impl ToString) -> CommandError {
    CommandError::Tokens { path: path.display().to_string(), cause: cause.to_string() }
}
