//! JSON-RPC 2.0 as MCP uses it: one message at a time, parameters as raw text, no trees.
//!
//! ```
//! use longhaul_wire::jsonrpc::{self, Message};
//!
//! let bytes = br#"{"jsonrpc":"2.0","id":"a-1","method":"tasks/get","params":{"taskId":"t"}}"#;
//! let Message::Request(request) = jsonrpc::parse(bytes).unwrap() else { panic!() };
//! assert_eq!(request.method, "tasks/get");
//! assert_eq!(jsonrpc::result(&request.id, "{}"), r#"{"jsonrpc":"2.0","id":"a-1","result":{}}"#);
//!
//! let rejected = jsonrpc::parse(br#"{"jsonrpc":"2.0","id":7,"method":5}"#).unwrap_err();
//! assert_eq!(rejected.id, Some(7.into()));
//! assert_eq!((rejected.error.code, rejected.error.http_status()), (-32600, 400));
//! ```

mod batch;
mod encode;
mod error;
mod id;
mod parse;

pub use batch::{BATCH_MAX, batch, is_batch, parse_batch};
pub use encode::{error, notification, one_line, request, response, result};
pub(crate) use error::{DUPLICATE_FIELD, describe_read_error, write_error};
pub use error::{RpcError, code, quote};
pub use id::{ID_BYTES_MAX, RequestId};
pub use parse::{DEPTH_MAX, InvalidMessage, Message, Notification, Request, Response, parse};
