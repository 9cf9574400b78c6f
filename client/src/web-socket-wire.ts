import { pauseMs } from "./recovery.ts";
import type { Wire } from "./wire.ts";

export interface WebSocketWireOptions {
  /** Address of the channel: `ws://127.0.0.1:49154/socket.io/`. */
  readonly url: string;
  /** Called at every connection. */
  readonly hello: () => object;
}

/** The parts of the service's frames that a client uses. */
interface Frame {
  readonly type: "welcome" | "refused" | "event" | "ping" | "ack";
  readonly id: string;
  readonly place?: string;
  readonly pingIntervalMs: number;
  readonly pingTimeoutMs: number;
  readonly code: string;
  readonly message: string;
  readonly event: string;
  readonly payload?: unknown;
}

type Listener = (data: any) => void;

/** Timeout from the start of a connection until the service accepts or refuses it. */
const WELCOME_MS = 20_000;
/** The service closed this connection on purpose: close code of `docs/websocket-protocol.md`. */
const DROPPED = 4410;

/** The realtime connection over the platform's WebSocket: JSON frames, and a new connection when one breaks. */
export class WebSocketWire implements Wire {
  readonly #options: WebSocketWireOptions;
  readonly #listeners = new Map<string, Set<Listener>>();
  #socket: WebSocket | undefined;
  #id: string | undefined;
  /** The client's position in the event stream. A new connection continues from it. */
  #place: string | undefined;
  #isWanted = true;
  #attempt = 0;
  #silenceMs = WELCOME_MS;
  /** Without a WebSocket: the timer of the next attempt. With a WebSocket: its timeout. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unsent: string[] = [];

  constructor(options: WebSocketWireOptions) {
    this.#options = options;
    this.#open();
  }

  get connected(): boolean {
    return this.#id !== undefined;
  }

  get active(): boolean {
    return this.#isWanted;
  }

  get id(): string | undefined {
    return this.#id;
  }

  connect(): this {
    this.#isWanted = true;
    if (!this.#socket) this.#open();
    return this;
  }

  disconnect(): this {
    this.#isWanted = false;
    const wasConnected = this.connected;
    this.#leave();
    if (wasConnected) this.#say("disconnect", "io client disconnect");
    return this;
  }

  emit(event: string, payload: unknown): void {
    const frame = JSON.stringify({ type: "event", event, payload });
    if (this.connected) this.#socket?.send(frame);
    else this.#unsent.push(frame);
  }

  on(event: string, listener: Listener): this {
    const known = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, known.add(listener));
    return this;
  }

  off(event: string, listener: Listener): this {
    this.#listeners.get(event)?.delete(listener);
    return this;
  }

  #open(): void {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#options.url);
    this.#socket = socket;
    this.#silenceMs = WELCOME_MS;
    this.#beAlive();
    // An earlier WebSocket may still emit events while it closes.
    const when = (event: "open" | "message" | "close", run: (data: any) => void) =>
      socket.addEventListener(event, (told) => this.#socket === socket && run(told));
    when("open", () => socket.send(JSON.stringify({ type: "hello", hello: this.#options.hello(), last: this.#place })));
    when("message", ({ data }: { readonly data: unknown }) => this.#receive(socket, JSON.parse(String(data)) as Frame));
    when("close", ({ code }: { readonly code: number }) => this.#lost(code));
  }

  #receive(socket: WebSocket, frame: Frame): void {
    this.#beAlive();
    if (frame.type === "ping") return socket.send('{"type":"pong"}');
    if (frame.type === "welcome") return this.#welcome(socket, frame);
    if (frame.type === "refused") return this.#refused(frame);
    if (frame.type !== "event") return;
    this.#place = frame.place ?? this.#place;
    this.#say(frame.event, frame.payload);
  }

  #welcome(socket: WebSocket, { id, place, pingIntervalMs, pingTimeoutMs }: Frame): void {
    this.#id = id;
    this.#place = place ?? this.#place;
    this.#attempt = 0;
    this.#silenceMs = pingIntervalMs + pingTimeoutMs;
    this.#beAlive();
    for (const each of this.#unsent.splice(0)) socket.send(each);
    this.#say("connect", undefined);
  }

  #refused({ code, message }: Frame): void {
    this.#isWanted = false;
    this.#leave();
    this.#say("connect_error", Object.assign(new Error(message), { data: { code } }));
  }

  #lost(code: number | undefined): void {
    const wasConnected = this.connected;
    const isDropped = code === DROPPED;
    this.#leave();
    if (isDropped) this.#isWanted = false;
    else this.#timer = setTimeout(() => this.#open(), pauseMs(this.#attempt++));
    if (wasConnected) this.#say("disconnect", isDropped ? "io server disconnect" : "transport close");
    else this.#say("connect_error", new Error("The realtime connection could not be made"));
  }

  /** A connection without any frame, not even a ping, counts as broken. */
  #beAlive(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lost(undefined), this.#silenceMs);
  }

  #leave(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#id = undefined;
    socket?.close();
  }

  #say(event: string, data: unknown): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(data);
  }
}
