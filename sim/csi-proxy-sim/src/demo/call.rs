//! One call of a driver: sent over a real connection, timed, and shown as it comes back.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Instant;

use api::GroupVersion;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::driver::{Difference, Driver, Outcome};
use super::screen::{bytes, short};

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Status>> + 'a>>;

/// A call that is sent when it is awaited.
#[must_use = "a call is sent when it is awaited"]
pub(super) struct Call<'a, T> {
    driver: &'a Driver<'a>,
    api: &'static GroupVersion,
    rpc: &'static str,
    about: String,
    send: Box<dyn FnOnce(Channel) -> Answer<'a, T> + 'a>,
}

/// A call came back.
struct Returned<T> {
    answer: Result<T, Status>,
    line: Line,
}

/// What is shown of a call.
pub(super) struct Line {
    /// The group-version called.
    pub(super) api: &'static GroupVersion,
    /// The RPC.
    pub(super) rpc: &'static str,
    /// What it was called on, in short.
    pub(super) about: String,
    /// How long it took.
    pub(super) time: std::time::Duration,
}

impl<'a, T: Tell + 'a> Call<'a, T> {
    pub(super) fn new<Q: Message + 'static, R: Message + Default + 'static>(
        driver: &'a Driver<'a>,
        api: &'static GroupVersion,
        rpc: &'static str,
        about: &dyn Display,
        request: Q,
        read: fn(R) -> T,
    ) -> Self {
        let path = api.rpcs.iter().find(|row| row.name == rpc).expect("an RPC of its group-version").path;
        let send = move |channel| -> Answer<'a, T> {
            Box::pin(async move { unary::<Q, R>(channel, path, request).await.map(read) })
        };
        Self { driver, api, rpc, about: about.to_string(), send: Box::new(send) }
    }

    /// The call must be refused, with `words` in the message.
    pub(super) async fn refused(self, words: &str) -> Outcome {
        let driver = self.driver;
        let Returned { answer, line } = self.go().await?;
        match answer {
            Err(status) if status.message().contains(words) && is_an_answer(&status) => {
                driver.show_refusal(&line, words);
                Ok(())
            }
            answer => {
                let have = answer.map_or_else(|status| said(&status), |answer| format!("answered: {}", answer.tell()));
                driver.show_failure(&line, &have);
                Err(Difference(format!("{} must be refused with '{words}', and {have}", line.rpc)))
            }
        }
    }

    /// The answer, or none where the daemon refuses, which is as good to the driver.
    pub(super) async fn or_refused(self) -> Outcome<Option<T>> {
        let driver = self.driver;
        let Returned { answer, line } = self.go().await?;
        match answer {
            Ok(answer) => {
                driver.show_answer(&line, &answer.tell());
                Ok(Some(answer))
            }
            Err(status) if is_an_answer(&status) => {
                driver.show_refusal(&line, "");
                Ok(None)
            }
            Err(status) => Err(driver.fail(&line, &status)),
        }
    }

    async fn go(self) -> Outcome<Returned<T>> {
        let channel = self.driver.channel(self.api).await?;
        let begun = Instant::now();
        let answer = (self.send)(channel).await;
        let line = Line { api: self.api, rpc: self.rpc, about: self.about, time: begun.elapsed() };
        Ok(Returned { answer, line })
    }
}

impl<'a, T: Tell + 'a> IntoFuture for Call<'a, T> {
    type Output = Outcome<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Outcome<T>> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let driver = self.driver;
            let Returned { answer, line } = self.go().await?;
            match answer {
                Ok(answer) => {
                    driver.show_answer(&line, &answer.tell());
                    Ok(answer)
                }
                Err(status) => Err(driver.fail(&line, &status)),
            }
        })
    }
}

/// Whether the daemon refused, as opposed to not being there or not knowing the RPC.
fn is_an_answer(status: &Status) -> bool {
    use tonic::Code::{Cancelled, DeadlineExceeded, Unavailable, Unimplemented};
    !matches!(status.code(), Cancelled | DeadlineExceeded | Unavailable | Unimplemented)
}

/// A refusal in words.
pub(super) fn said(status: &Status) -> String {
    format!("failed with {:?}: {}", status.code(), status.message())
}

async fn unary<Q, R>(channel: Channel, path: &'static str, request: Q) -> Result<R, Status>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<Q, R>::default();
    let response = client.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?;
    Ok(response.into_inner())
}

/// Telling an answer in a few words.
pub(super) trait Tell {
    /// The words; none for an answer that says no more than that it was done.
    fn tell(&self) -> String;
}

impl Tell for () {
    fn tell(&self) -> String {
        String::new()
    }
}

impl Tell for bool {
    fn tell(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Tell for u32 {
    fn tell(&self) -> String {
        format!("disk {self}")
    }
}

impl Tell for String {
    fn tell(&self) -> String {
        short(self)
    }
}

impl Tell for Vec<String> {
    fn tell(&self) -> String {
        match self.as_slice() {
            [one] => short(one),
            several => format!("{} names", several.len()),
        }
    }
}

impl<K, V> Tell for BTreeMap<K, V> {
    fn tell(&self) -> String {
        format!("{} disks", self.len())
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) u64);

impl Tell for Bytes {
    fn tell(&self) -> String {
        bytes(self.0)
    }
}

/// The size of a volume and what is used of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VolumeSize {
    /// All of it.
    pub(super) total: u64,
    /// What is used.
    pub(super) used: u64,
}

impl Tell for VolumeSize {
    fn tell(&self) -> String {
        format!("{} of {}", bytes(self.used), bytes(self.total))
    }
}

/// A size from the wire, where it has a sign.
pub(super) fn unsigned(size: i64) -> u64 {
    u64::try_from(size).unwrap_or_default()
}
