//! Places for calls that run, shared fairly between connections.
//!
//! The first call of a connection may have any place, its further ones only half of all. So a few connections that
//! would like to have all of them leave half to the others. Who finds no place waits in the order of arrival, for as
//! long as there is room to wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::admission::connections::ConnectionId;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A number of places.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    queue: usize,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    taken: usize,
    by_connection: HashMap<ConnectionId, usize>,
    waiting: VecDeque<Waiter>,
    refused: u64,
}

#[derive(Debug)]
struct Waiter {
    connection: ConnectionId,
    place: oneshot::Sender<Place>,
}

/// One of them; dropping it hands it on.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    connection: ConnectionId,
}

impl Places {
    /// `all` places, for which `queue` calls may wait.
    pub(crate) fn new(all: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { all, queue, book: Mutex::default() })
    }

    /// Takes a place, waiting for it if there is room to wait, but not for long.
    pub(crate) async fn take(self: &Arc<Self>, connection: ConnectionId, patience: Duration) -> Option<Place> {
        let place = {
            let mut book = self.book();
            if book.may(connection, self.all) {
                return Some(self.give(&mut book, connection));
            }
            book.waiting.retain(|waiter| !waiter.place.is_closed());
            if book.waiting.len() >= self.queue {
                book.refused += 1;
                return None;
            }
            let (sender, place) = oneshot::channel();
            book.waiting.push_back(Waiter { connection, place: sender });
            place
        };
        let place = timeout(patience, place).await.ok().and_then(Result::ok);
        self.book().refused += u64::from(place.is_none());
        place
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.book().taken
    }

    /// How many calls wait for one.
    pub(crate) fn waiting(&self) -> usize {
        self.book().waiting.iter().filter(|waiter| !waiter.place.is_closed()).count()
    }

    /// How many calls have got none.
    pub(crate) fn refused(&self) -> u64 {
        self.book().refused
    }

    fn give(self: &Arc<Self>, book: &mut Book, connection: ConnectionId) -> Place {
        book.taken += 1;
        *book.by_connection.entry(connection).or_default() += 1;
        Place { places: Arc::clone(self), connection }
    }

    /// Takes the first out of the queue that may have a place now, and the place for it.
    fn next(self: &Arc<Self>) -> Option<(Waiter, Place)> {
        let mut guard = self.book();
        let book = &mut *guard;
        book.waiting.retain(|waiter| !waiter.place.is_closed());
        let at = book.waiting.iter().position(|waiter| book.may(waiter.connection, self.all))?;
        let waiter = book.waiting.remove(at)?;
        let place = self.give(book, waiter.connection);
        drop(guard);
        Some((waiter, place))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it holds the lock.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn may(&self, connection: ConnectionId, all: usize) -> bool {
        let further = self.taken - self.by_connection.len();
        self.taken < all && (!self.by_connection.contains_key(&connection) || further < all / 2)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut book = self.places.book();
        book.taken -= 1;
        if let Some(taken) = book.by_connection.get_mut(&self.connection) {
            *taken -= 1;
            if *taken == 0 {
                book.by_connection.remove(&self.connection);
            }
        }
        let nobody = book.waiting.is_empty();
        drop(book);
        if nobody {
            return;
        }
        while let Some((waiter, place)) = self.places.next() {
            // One that has just given up hands the place on by dropping it.
            let _ = waiter.place.send(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::admission::connections::{Connections, Limits};

    use super::{Place, Places};

    const PATIENCE: Duration = Duration::from_secs(5);

    fn connections<const N: usize>() -> [crate::admission::connections::Connection; N] {
        let all = Connections::new(Limits::default());
        std::array::from_fn(|_| all.admit())
    }

    async fn take_all(places: &Arc<Places>, connection: &crate::admission::connections::Connection) -> Vec<Place> {
        let mut taken = Vec::new();
        while let Some(place) = places.take(connection.id(), Duration::ZERO).await {
            taken.push(place);
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn however_greedy_some_are_another_finds_a_place() {
        let places = Places::new(64, 8);
        let [modest, greedy @ ..] = connections::<9>();
        let mut all = Vec::new();
        for connection in &greedy {
            all.push(take_all(&places, connection).await);
        }
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [33, 1, 1, 1, 1, 1, 1, 1]);
        assert!(places.take(modest.id(), Duration::ZERO).await.is_some());
        drop(all);
        assert_eq!(take_all(&places, &modest).await.len(), 33, "what was given back can be had again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_place_can_be_taken() {
        let places = Places::new(1, 0);
        let [one, other] = connections();
        let place = places.take(one.id(), PATIENCE).await.expect("it is free");
        assert!(places.take(other.id(), PATIENCE).await.is_none());
        drop(place);
        assert!(places.take(other.id(), PATIENCE).await.is_some());
        assert_eq!((places.taken(), places.refused()), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_gets_the_next_place_in_the_order_of_arrival() {
        let places = Places::new(1, 8);
        let [one, other] = connections();
        let first = places.take(one.id(), PATIENCE).await.expect("it is free");
        let wait = |id| {
            tokio::spawn({
                let places = Arc::clone(&places);
                async move { places.take(id, PATIENCE).await }
            })
        };
        let (second, gone, third) = (wait(other.id()), wait(one.id()), wait(one.id()));
        while places.waiting() < 3 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        gone.await.expect_err("it was aborted");
        assert_eq!(places.waiting(), 2);
        drop(first);
        let second = second.await.expect("no panic").expect("it came first");
        assert!(!third.is_finished());
        drop(second);
        assert!(third.await.expect("no panic").is_some());
        assert_eq!((places.taken(), places.waiting(), places.refused()), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn where_too_many_wait_the_next_is_told_at_once_and_those_in_time() {
        let places = Places::new(1, 2);
        let [one, other] = connections();
        let _place = places.take(one.id(), PATIENCE).await;
        let start = tokio::time::Instant::now();
        let (a, b, at_once) =
            tokio::join!(places.take(other.id(), PATIENCE), places.take(other.id(), PATIENCE), async {
                assert!(places.take(other.id(), PATIENCE).await.is_none());
                start.elapsed()
            });
        assert!(a.is_none() && b.is_none());
        assert_eq!((at_once, places.refused(), places.waiting()), (Duration::ZERO, 3, 0));
    }
}
