import { connect } from "node:net";
import { openRelay, type Relay } from "./relay.ts";

/** PostgreSQL's message with the number of a session: `K`, its length, the number, a key. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

/** A server before PostgreSQL of 127.0.0.1 that clients can tell from it as they can tell a pooler: it gives sessions numbers of its own. */
export function openPooler(target: number): Promise<Relay> {
  return openRelay(
    () => connect(target, "127.0.0.1"),
    (data) => {
      const at = data.indexOf(KEY_DATA);
      if (at >= 0) data.writeInt32BE(4711, at + KEY_DATA.length);
    },
  );
}
