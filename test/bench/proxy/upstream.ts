/**
 * A model provider of minimal cost. It reads the head of a request, counts the body, and sends prepared bytes. It runs in its own process,
 * and prints its origin as a line of JSON. Streams send one chunk per turn of the event loop.
 */
import { createServer, type Socket } from "node:net";
import { listening } from "./listening.ts";
import { CALL_PATHS, type Kind, streamedAnswer, wholeAnswer } from "./workload.ts";

interface Answers {
  readonly plain: Buffer;
  readonly stream: readonly Buffer[];
}

const HEAD_END = Buffer.from("\r\n\r\n");
const ANSWERS = { messages: answersOf("messages"), "chat-completions": answersOf("chat-completions") };

const server = createServer({ noDelay: true }, (socket) => new Connection(socket));
listening(server);

/** Streams in progress. Each turn sends one chunk of every stream, so that a reader does not receive two chunks in one piece. */
const streams = new Map<Socket, Iterator<Buffer>>();

function startStream(socket: Socket, chunks: readonly Buffer[]): void {
  if (streams.size === 0) setImmediate(advanceStreams);
  streams.set(socket, chunks.values());
}

function advanceStreams(): void {
  for (const [socket, chunks] of streams) {
    // Wait for a slow reader, so that no data accumulate here.
    if (socket.writableNeedDrain) continue;
    const next = chunks.next();
    if (next.done) streams.delete(socket);
    else socket.write(next.value);
  }
  if (streams.size > 0) setImmediate(advanceStreams);
}

class Connection {
  readonly #socket: Socket;
  #head: Buffer | undefined;
  #answers: Answers = ANSWERS.messages;
  #kind: Kind = "plain";
  /** Bytes of the request's body that have not arrived. */
  #left = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes) => (this.#left > 0 ? this.#body(bytes) : this.#begin(bytes)));
    socket.on("error", () => {});
    socket.on("close", () => streams.delete(socket));
  }

  #begin(bytes: Buffer): void {
    const all = this.#head ? Buffer.concat([this.#head, bytes]) : bytes;
    const end = all.indexOf(HEAD_END);
    this.#head = end < 0 ? all : undefined;
    if (end < 0) return;
    const head = all.toString("latin1", 0, end).toLowerCase();
    const at = head.indexOf("\r\ncontent-length:");
    if (at < 0) return void this.#socket.end("HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\n\r\n");
    this.#left = Number.parseInt(head.slice(at + 17), 10);
    this.#answers = head.startsWith(`post ${CALL_PATHS.messages}`) ? ANSWERS.messages : ANSWERS["chat-completions"];
    this.#kind = "plain";
    this.#body(all.subarray(end + HEAD_END.length));
  }

  #body(bytes: Buffer): void {
    this.#left -= bytes.length;
    // A normal body arrives in one piece. Large bodies of this benchmark do not ask for a stream.
    if (bytes.includes('"stream":true')) this.#kind = "stream";
    if (this.#left > 0) return;
    if (this.#kind === "stream") startStream(this.#socket, this.#answers.stream);
    else this.#socket.write(this.#answers.plain);
  }
}

function answersOf(protocol: keyof typeof CALL_PATHS): Answers {
  const head = "HTTP/1.1 200 OK\r\ndate: Tue, 01 Jan 2030 00:00:00 GMT\r\nrequest-id: req_bench\r\n";
  const whole = wholeAnswer(protocol);
  const plain = `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(whole)}\r\n\r\n${whole}`;
  const events = streamedAnswer(protocol).map((text) => Buffer.from(chunk(text)));
  const begin = Buffer.from(`${head}content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n`);
  return {
    plain: Buffer.from(plain),
    stream: [
      Buffer.concat([begin, events[0]!]),
      ...events.slice(1, -1),
      Buffer.concat([events.at(-1)!, Buffer.from("0\r\n\r\n")]),
    ],
  };
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
