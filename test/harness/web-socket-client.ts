/** One received frame. */
export type Frame = Record<string, any>;

/** A client as a reader of the protocol's page writes it: the platform's own WebSocket and JSON, no library. */
export interface WebSocketClient {
  readonly socket: WebSocket;
  /** Every frame but pings, which are answered. */
  readonly frames: readonly Frame[];
  /** Resolves with the first frame that fits; rejects when the connection ends before. */
  frame(fits: (frame: Frame) => boolean): Promise<Frame>;
  send(frame: unknown): void;
  /** Resolves with the end. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

export interface OpenOptions {
  /** Answer no pings. */
  readonly isMute?: boolean;
  /** As a browser sends it. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens a WebSocket and sends nothing yet. Rejects if the service does not open it. */
export function openWebSocket(url: string, { isMute = false, headers }: OpenOptions = {}): Promise<WebSocketClient> {
  // Node's own takes headers where browsers take protocols.
  const socket = new WebSocket(url.replace(/^http/, "ws"), headers && ({ headers } as never));
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  const look = () => waiting.forEach((each) => each());
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.addEventListener("close", ({ code, reason }) => {
      resolve({ code, reason });
      look();
    }),
  );
  const client: WebSocketClient = {
    socket,
    frames,
    closed,
    send: (frame) => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
    frame: (fits) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = frames.find(fits);
          if (found) resolve(found);
          else if (socket.readyState === WebSocket.CLOSED) reject(new Error("The connection has ended"));
          else return;
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      }),
  };
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data as string) as Frame;
    if (frame["type"] === "ping" && !isMute) return client.send({ type: "pong" });
    frames.push(frame);
    look();
  });
  return new Promise((resolve, reject) => {
    socket.addEventListener("open", () => resolve(client));
    socket.addEventListener("error", () => reject(new Error("The WebSocket was not opened")));
  });
}

/** Opens a WebSocket and presents a hello. Rejects with `code` and `message` of a refusal. */
export async function connectWebSocket(
  url: string,
  hello: unknown,
  { last, ...options }: OpenOptions & { readonly last?: string | undefined } = {},
): Promise<WebSocketClient & { readonly welcome: Frame }> {
  const client = await openWebSocket(url, options);
  client.send({ type: "hello", hello, ...(last !== undefined && { last }) });
  const answer = await client.frame(({ type }) => type === "welcome" || type === "refused");
  if (answer["type"] === "welcome") return { ...client, welcome: answer };
  throw Object.assign(new Error(answer["message"]), { code: answer["code"] });
}
