/** Bytes of a request body (specification 8). */
export const REQUEST_BYTES = 256 * 1024 * 1024;

/** Bytes of a body that are collected before the upstream call begins. Most bodies are shorter and are sent in one piece. */
export const GATHERED_BYTES = 256 * 1024;

/** Bytes of a body that stay in memory while its model is unknown. If it is longer, it is stored in a temporary file. */
export const HELD_BYTES = 4 * 1024 * 1024;

/** Bytes of a compressed answer's copy that may wait to be decompressed for the token counts. The answer itself does not wait. */
export const WATCHED_AHEAD_BYTES = 1024 * 1024;

/** Silence after which a converted stream gets a keep-alive. */
export const KEEP_ALIVE_MS = 15_000;

/** Characters of a safe token's label. */
export const LABEL_LENGTH = 200;

/** Maximum bytes of a request that is converted on the event loop. A worker thread converts larger requests. */
export const CONVERTED_HERE_BYTES = 512 * 1024;

/** How long the last use of a safe token stays as it is stored. */
export const USE_NOTED_MS = 5 * 60_000;
