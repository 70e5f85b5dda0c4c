//! gRPC messages on the wire: each has a prefix of five bytes, a flag for compression and its
//! length.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use h2::RecvStream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, skip_field};
use tonic::Status;
use tonic::metadata::MetadataValue;

use crate::admission::limits::LARGEST_RESPONSE;
use crate::admission::message_memory::{PREFIX, check_length, declared_length};
use crate::admission::response_body::{CallGuard, ResponseStream};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Refuses a request that is not one of gRPC, with the status of HTTP that the specification of
/// gRPC over HTTP/2 demands.
pub(crate) fn check_head(request: &Request<RecvStream>) -> Result<(), (StatusCode, Status)> {
    if request.method() != Method::POST {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            invalid("the method of the request is not POST, which gRPC uses"),
        ));
    }
    // The header filter leaves out the content type of gRPC.
    if let Some(value) = request.headers().get(CONTENT_TYPE) {
        let value = quoted(value);
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            invalid(format!(
                "the content type of the request is {value}; gRPC uses application/grpc"
            )),
        ));
    }
    Ok(())
}

/// Quotes the beginning of the value of a header. A client need not read the error that the value is
/// in, and no limit counts errors.
pub(crate) fn quoted(value: &HeaderValue) -> String {
    const LONGEST: usize = 80;
    let (beginning, rest) = value.as_bytes().split_at(value.len().min(LONGEST));
    let more = if rest.is_empty() { "" } else { "..." };
    format!("`{}{more}`", beginning.escape_ascii())
}

/// Refuses requests whose headers declare a compression; this server supports none.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Status> {
    let Some(encoding) = headers
        .get(GRPC_ENCODING)
        .filter(|encoding| *encoding != "identity")
    else {
        return Ok(());
    };
    let encoding = quoted(encoding);
    let mut status = Status::unimplemented(format!(
        "compression with {encoding} is not supported; send identity"
    ));
    status.metadata_mut().insert(
        "grpc-accept-encoding",
        MetadataValue::from_static("identity"),
    );
    Err(status)
}

/// Decodes the message of a request. A unary request has one; messages after the first are ignored.
/// A field whose number is not in `only_fields` is an error, unless that is `None`.
pub(crate) fn decode<M: Message + Default>(
    mut body: Bytes,
    only_fields: Option<&[u32]>,
) -> Result<M, Status> {
    let mut first = None;
    while body.has_remaining() {
        let encoded = take_message(&mut body)?;
        let message = M::decode(&*encoded).map_err(|error| invalid(error.to_string()))?;
        if let (None, Some(known)) = (&first, only_fields) {
            refuse_other_fields(&encoded, known)?;
        }
        first.get_or_insert(message);
    }
    first.ok_or_else(|| invalid("the request has no message"))
}

/// Takes the first message from a body that is not empty.
fn take_message(body: &mut Bytes) -> Result<Bytes, Status> {
    let length = declared_length(body);
    if body.first() != Some(&0) {
        return Err(invalid(
            "the request is flagged as compressed, but its headers declare no encoding",
        ));
    }
    check_length(length)?;
    if body.len() < PREFIX + length {
        return Err(invalid("the request ends within a message"));
    }
    body.advance(PREFIX);
    Ok(body.split_to(length))
}

/// Refuses a message with a field whose number is not in `known`.
fn refuse_other_fields(mut message: &[u8], known: &[u32]) -> Result<(), Status> {
    while message.has_remaining() {
        let field = decode_key(&mut message).and_then(|(number, wire_type)| {
            skip_field(wire_type, number, &mut message, DecodeContext::default())?;
            Ok(number)
        });
        let number = field.map_err(|error| invalid(error.to_string()))?;
        if !known.contains(&number) {
            return Err(invalid(format!(
                "the request has an unknown field with the number {number}; csi-proxy formats \
                 nothing that it may have misunderstood, so leave the field out"
            )));
        }
    }
    Ok(())
}

/// Returns the error of an invalid request. gRPC libraries answer with Internal; this server uses
/// InvalidArgument, so that a client's mistake does not look like a defect of the server.
pub(crate) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Encodes the message of a response.
pub(crate) fn encode(message: &impl Message) -> Result<Bytes, Status> {
    let length = message.encoded_len();
    let Some(prefix) = u32::try_from(length)
        .ok()
        .filter(|_| length <= LARGEST_RESPONSE)
    else {
        return Err(Status::failed_precondition(format!(
            "the response has {length} bytes, but the limit is {LARGEST_RESPONSE}; reduce what it \
             lists, such as the targets of the portal"
        )));
    };
    let mut body = BytesMut::with_capacity(PREFIX + length);
    body.put_u8(0);
    body.put_u32(prefix);
    message
        .encode(&mut body)
        .map_err(|error| Status::internal(error.to_string()))?;
    Ok(body.freeze())
}

/// Sends the only message of a response, and the status OK.
pub(crate) fn send(message: Bytes, guard: CallGuard, response: &mut ResponseStream) {
    response.send_headers(headers(), false);
    response.send_holding(message, Some(guard));
    response.send_trailers(ok());
}

/// Returns the headers of a response that has messages.
pub(crate) fn headers() -> HeaderMap {
    with_content_type(HeaderMap::with_capacity(1))
}

/// Returns the trailers with the status OK.
pub(crate) fn ok() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}

/// Returns the headers, and all, of the response to a call that failed.
pub(crate) fn failure(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    status
        .add_header(&mut headers)
        .expect("a status is encoded so that it is a valid header");
    with_content_type(headers)
}

fn with_content_type(mut headers: HeaderMap) -> HeaderMap {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers
}

#[cfg(test)]
mod tests {
    use api::filesystem::v1::PathExistsRequest;
    use bytes::Bytes;
    use http::HeaderMap;
    use tonic::{Code, Status};

    use super::{check_encoding, decode, encode};

    fn request(path: &str) -> PathExistsRequest {
        PathExistsRequest { path: path.into() }
    }

    fn decoded(body: &[u8]) -> Result<PathExistsRequest, Code> {
        decode(Bytes::copy_from_slice(body), None).map_err(|status: Status| {
            texts::seen!(status.message());
            status.code()
        })
    }

    #[test]
    fn a_response_above_the_limit_is_refused() {
        let path = "x".repeat((1 << 20) - 4);
        assert_eq!(encode(&request(&path)).unwrap().len(), (1 << 20) + 5);
        let status = encode(&request(&(path + "x"))).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        texts::seen!(status.message());
    }

    #[test]
    fn messages_after_the_first_are_ignored() {
        let [first, second] = ["a", "b"].map(|path| encode(&request(path)).unwrap());
        assert_eq!(decoded(&[&first[..], &second].concat()), Ok(request("a")));
        assert_eq!(
            decoded(&[&first[..], &second[..3]].concat()),
            Err(Code::InvalidArgument)
        );
    }

    #[test]
    fn a_body_that_is_not_one_uncompressed_message_is_refused() {
        for (what, body, code) in [
            ("no message", &[][..], Code::InvalidArgument),
            ("half a prefix", &[0, 0, 0], Code::InvalidArgument),
            (
                "half a message",
                &[0, 0, 0, 0, 3, 0x0a, 1],
                Code::InvalidArgument,
            ),
            ("compressed", &[1, 0, 0, 0, 0], Code::InvalidArgument),
            ("an unknown flag", &[2, 0, 0, 0, 0], Code::InvalidArgument),
            (
                "not protobuf",
                &[0, 0, 0, 0, 2, 0x0a, 1],
                Code::InvalidArgument,
            ),
            (
                "not UTF-8",
                &[0, 0, 0, 0, 3, 0x0a, 1, 0xff],
                Code::InvalidArgument,
            ),
            (
                "16 KiB and a byte",
                &[0, 0, 0, 0x40, 1],
                Code::InvalidArgument,
            ),
        ] {
            assert_eq!(decoded(body), Err(code), "{what}");
        }
    }

    #[test]
    fn only_identity_encoding_is_supported() {
        let check = |encoding: &str| {
            check_encoding(&HeaderMap::from_iter([(
                "grpc-encoding".parse().unwrap(),
                encoding.parse().unwrap(),
            )]))
        };
        assert!(check_encoding(&HeaderMap::new()).is_ok() && check("identity").is_ok());
        let status = check("gzip").unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        texts::seen!(status.message());
        assert_eq!(
            status.metadata().get("grpc-accept-encoding").unwrap(),
            "identity"
        );
    }
}
