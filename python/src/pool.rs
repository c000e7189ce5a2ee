//! Threads for the work, and the lock of the interpreter released meanwhile.
//!
//! The library computes on the pool it is called from. Every Python thread has one of its own, made when first needed, so
//! nothing is shared and no lock can be left held by a fork: a child process finds a pool of another process, whose
//! threads it does not have, forgets it and makes a new one.

use crate::failure::{Failure, Outcome};
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

thread_local! {
    static POOL: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// A pool and the process that made it.
struct Own {
    process: u32,
    threads: usize,
    /// Taken only when dropped.
    pool: Option<Arc<ThreadPool>>,
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.pool.take());
        }
    }
}

/// The calling thread's pool of so many threads, 0 for one per core.
fn pool(threads: usize) -> Outcome<Arc<ThreadPool>> {
    POOL.with_borrow_mut(|slot| {
        let process = std::process::id();
        if let Some(Own { process: p, threads: t, pool: Some(pool) }) = slot
            && (*p, *t) == (process, threads)
        {
            return Ok(Arc::clone(pool));
        }
        let built = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = Arc::new(built.map_err(|e| Failure::Value(format!("{threads} threads: {e}")))?);
        *slot = Some(Own { process, threads, pool: Some(Arc::clone(&pool)) });
        Ok(pool)
    })
}

/// Time between looks at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// [`run`], with an eye on Ctrl-C: it sets `interrupt`, which the work is to obey, and is what comes back.
pub fn run_interruptible<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    interrupt: &AtomicBool,
    work: impl FnOnce() -> Outcome<T> + Send,
) -> Outcome<T> {
    let pool = pool(threads.unwrap_or(0))?;
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| pool.install(work)));
            // The receiver waits for it, whatever Python raises meanwhile.
            _ = send.send(result.unwrap_or_else(|payload| Err(Failure::of_panic(payload.as_ref()))));
        });
        let mut raised = None;
        loop {
            let received = py.detach(|| receive.lock().ok().map(|r| r.recv_timeout(PATIENCE)));
            match received {
                Some(Ok(result)) => return raised.map_or(result, Err),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                _ => return Err(Failure::Value("the worker thread ended without a result".into())),
            }
            if let Err(error) = py.check_signals() {
                interrupt.store(true, Ordering::SeqCst);
                raised = Some(error.into());
            }
        }
    })
}

/// Runs `work` on so many threads (all cores if `None`) with the interpreter free for others. A panic becomes an error.
pub fn run<T: Ungil + Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce() -> Outcome<T> + Ungil + Send,
) -> Outcome<T> {
    let pool = pool(threads.unwrap_or(0))?;
    py.detach(|| catch_unwind(AssertUnwindSafe(|| pool.install(work))))
        .unwrap_or_else(|payload| Err(Failure::of_panic(payload.as_ref())))
}
