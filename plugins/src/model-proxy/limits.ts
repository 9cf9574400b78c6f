/** Bytes of a request body (specification 8). */
export const REQUEST_BYTES = 256 * 1024 * 1024;

/** Bytes of a body that are gathered before the upstream call begins; most bodies end earlier and go out in one piece. */
export const GATHERED_BYTES = 256 * 1024;

/** Bytes of a body that stay in memory while its model is still unknown; what comes after goes to a temporary file. */
export const HELD_BYTES = 4 * 1024 * 1024;

/** Bytes of an upstream's error that are read; the rest says nothing more. */
export const ERROR_BYTES = 1024 * 1024;

/** Bytes of a whole answer that is converted. */
export const ANSWER_BYTES = 64 * 1024 * 1024;

/** Bytes of a compressed answer that wait to be unpacked for its counts; the answer itself passes and never waits. */
export const WATCHED_AHEAD_BYTES = 1024 * 1024;

/** Silence after which a converted stream carries a keep-alive. */
export const KEEP_ALIVE_MS = 15_000;

/** Characters of a safe token's label. */
export const LABEL_LENGTH = 200;

/** Bytes of a request that are converted on the event loop itself; a larger one goes to a worker thread. */
export const CONVERTED_HERE_BYTES = 512 * 1024;
