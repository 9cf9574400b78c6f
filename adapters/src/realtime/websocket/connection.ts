import { Buffer } from "node:buffer";
import { ports } from "@portico/core";
import type { Message, Peer } from "crossws";
import type { SocketLimits } from "../socket-limits.ts";
import { type ClientFrame, CLOSING, type Closing, readFrame, type ServiceFrame } from "./frames.ts";

export interface ConnectionGiven<W> {
  readonly service: ports.RealtimeService<W>;
  readonly limits: SocketLimits;
  readonly log: ports.Log;
}

/** Polling interval for a transport that does not report when its data has left. */
const DRAIN_POLL_MS = 5;

/** One client, from its open WebSocket to its end: greeted, then connected, then ended. */
export class Connection<W> {
  readonly #peer: Peer;
  readonly #given: ConnectionGiven<W>;
  readonly #ended = new AbortController();
  #isGreeted = false;
  #socket: ports.RealtimeSocket<W> | undefined;
  /** Frames that were sent since all data had left. */
  #waiting = 0;
  /** Before admission: the timeout of the hello. After it: the next ping, or the timeout of its answer. */
  #timer: ReturnType<typeof setTimeout>;
  #isAsked = false;

  constructor(peer: Peer, given: ConnectionGiven<W>) {
    this.#peer = peer;
    this.#given = given;
    this.#timer = setTimeout(() => this.close(CLOSING.helloTimeout), given.limits.helloTimeoutMs);
  }

  /** Whether events can be sent to it. */
  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#ended.signal.aborted;
  }

  receive(message: Message): void {
    if (this.#ended.signal.aborted) return;
    if (typeof message.rawData !== "string") return this.close(CLOSING.binary);
    // On hosts other than Node, the adapter may accept larger messages.
    if (Buffer.byteLength(message.rawData) > this.#given.limits.maxMessageBytes) return this.close(CLOSING.tooLarge);
    const frame = readFrame(message.rawData);
    // One decision per connection. Otherwise a flood of hellos would be a flood of decisions.
    if (!frame || (frame.type === "hello") === this.#isGreeted) return this.#refuseFrame();
    if (frame.type === "hello") return void this.#admit(frame);
    if (!this.#socket) return this.#refuseFrame();
    if (this.#isAsked) this.#beatLater();
    if (frame.type === "pong") return;
    if (frame.ack !== undefined) this.#tell({ type: "ack", ack: frame.ack });
    if (!this.isConnected) return;
    this.#given.service.receive(this.#socket, frame.event, frame.payload);
  }

  /** False if the connection has ended, also because of this event: a client that is too far behind is cut. */
  send(event: string, payload: unknown, place: string | undefined): boolean {
    if (!this.isConnected) return false;
    this.#tell({ type: "event", event, payload, place });
    return this.isConnected;
  }

  /** The platform has answered a ping of the WebSocket protocol. Its answers wait for the client as frames do. */
  pinged(): void {
    if (!this.#ended.signal.aborted) this.#bound();
  }

  async drained(): Promise<boolean> {
    const { signal } = this.#ended;
    await this.#peer.waitForDrain({ pollInterval: DRAIN_POLL_MS, signal }).catch(() => {});
    return this.isConnected;
  }

  /** With a close frame that gives the reason. */
  close({ code, reason }: Closing): void {
    if (!this.end()) return;
    this.#peer.close(code, reason);
  }

  /** Without a close frame, which would wait behind the unread data. */
  cut(why: string): void {
    if (!this.end()) return;
    this.#given.log.warn(why, { path: this.#given.service.path, socket: this.#peer.id });
    terminate(this.#peer);
  }

  /** Accepts no more input and notifies the service. False if it was ended before. */
  end(): boolean {
    if (this.#ended.signal.aborted) return false;
    clearTimeout(this.#timer);
    this.#ended.abort(new DOMException("The client went away", "AbortError"));
    if (this.#socket) this.#given.service.gone(this.#socket);
    return true;
  }

  async #admit({ hello, last }: Extract<ClientFrame, { type: "hello" }>): Promise<void> {
    this.#isGreeted = true;
    const { service, limits } = this.#given;
    const { signal } = this.#ended;
    try {
      const who = await service.admit(hello, signal);
      if (signal.aborted) return;
      const resumption = service.resume?.(who, last);
      const socket = { id: this.#peer.id, who };
      this.#socket = socket;
      const { pingIntervalMs, pingTimeoutMs } = limits;
      const begins = resumption && { place: resumption.resumePoint, isWhole: resumption.isWhole };
      this.#write({ type: "welcome", id: socket.id, ...begins, pingIntervalMs, pingTimeoutMs });
      this.#beatLater();
      service.joined(socket, resumption?.resumePoint);
    } catch (error) {
      if (signal.aborted) return;
      this.#write({ type: "refused", ...refusalOf(error) });
      this.close(ports.ConnectionRefused.is(error) ? CLOSING.refused : CLOSING.failed);
    }
  }

  #refuseFrame(): void {
    this.#given.log.warn("A realtime client that sent an invalid frame was disconnected", {
      path: this.#given.service.path,
      socket: this.#peer.id,
    });
    this.close(CLOSING.invalid);
  }

  /** Browsers neither send nor see WebSocket pings, so pings are frames of this protocol. */
  #beatLater(): void {
    const { pingIntervalMs, pingTimeoutMs } = this.#given.limits;
    clearTimeout(this.#timer);
    this.#isAsked = false;
    this.#timer = setTimeout(() => {
      this.#isAsked = true;
      this.#timer = setTimeout(() => this.cut("A realtime client that answers no ping was cut"), pingTimeoutMs);
      this.#tell({ type: "ping" });
    }, pingIntervalMs);
  }

  /** Also cuts the client if too much waits for it. Otherwise a client that asks and never reads would fill the memory. */
  #tell(frame: ServiceFrame): void {
    this.#write(frame);
    this.#bound();
  }

  #bound(): void {
    const { bufferedAmount } = this.#peer;
    const { events, bytes } = this.#given.limits.backlog;
    this.#waiting = bufferedAmount === 0 ? 0 : this.#waiting + 1;
    if (this.#waiting > events || bufferedAmount > bytes) this.cut("A realtime client that reads too slowly was cut");
  }

  #write(frame: ServiceFrame): void {
    try {
      this.#peer.send(JSON.stringify(frame));
    } catch {
      // A WebSocket that is closing accepts no data. Its `close` follows.
    }
  }
}

function refusalOf(error: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = ports.ConnectionRefused.is(error) ? error : { code: "internal_error", message: "Internal error" };
  return { code, message };
}

/** Ends a WebSocket at once if the platform can, otherwise with a closing handshake. */
export function terminate(peer: Peer): void {
  try {
    peer.terminate();
  } catch {
    peer.close();
  }
}
