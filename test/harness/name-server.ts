import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A name server on this machine for a few names. */
export interface NameServer extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  /** Names and their IPv4 addresses. A test may change them. */
  readonly names: Map<string, string>;
}

const HEAD_BYTES = 12;
/** An answer; recursion is available. */
const ANSWER = 0x8180;
const UNKNOWN_NAME = 3;
const [A, IN] = [1, 1];

/** Answers questions for IPv4 addresses over UDP. Other questions about a known name have an empty answer. */
export async function startNameServer(names: Iterable<readonly [string, string]>): Promise<NameServer> {
  const known = new Map(names);
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) => socket.send(answer(question, known), port, address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    names: known,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => socket.close(resolve));
    },
  };
}

function answer(question: Buffer, known: ReadonlyMap<string, string>): Buffer {
  const labels: string[] = [];
  let at = HEAD_BYTES;
  for (let length = question[at]!; length > 0; length = question[at]!) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const asked = question.subarray(HEAD_BYTES, at + 5);
  const address = known.get(labels.join(".").toLowerCase());
  const isAnswered = address !== undefined && type === A;
  const head = Buffer.alloc(HEAD_BYTES);
  question.copy(head, 0, 0, 2);
  head.writeUInt16BE(ANSWER + (address === undefined ? UNKNOWN_NAME : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(isAnswered ? 1 : 0, 6);
  if (!isAnswered) return Buffer.concat([head, asked]);
  const record = Buffer.alloc(16);
  // The name is the one of the question.
  record.writeUInt16BE(0xc000 + HEAD_BYTES, 0);
  record.writeUInt16BE(A, 2);
  record.writeUInt16BE(IN, 4);
  record.writeUInt32BE(1, 6);
  record.writeUInt16BE(4, 10);
  record.set(address.split(".").map(Number), 12);
  return Buffer.concat([head, asked, record]);
}
