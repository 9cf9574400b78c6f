/** For programs that check or restore a store, beside a running service or before one starts. */
export { markPath, readMark, writeMark } from "../records/sqlite/durable-mark.ts";
