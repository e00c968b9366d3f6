use std::io;
use std::path::Path;

/// Reads a file. It is an error if the path names something else, such as a pipe, which could keep the reader waiting
/// forever.
pub async fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    tokio::fs::read(path).await
}
