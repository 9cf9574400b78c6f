/** For programs that check a store beside a running service. */
export { readMark } from "../records/sqlite/durable-mark.ts";
