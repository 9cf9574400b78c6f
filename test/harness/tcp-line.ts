import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A line between a client and a server of this machine, which the test breaks. */
export interface TcpLine extends AsyncDisposable {
  /** Where clients connect, on 127.0.0.1. */
  readonly port: number;
  /** Break all connections. New ones are refused until `heal`. */
  cut(): void;
  /** Break all connections. New ones are accepted. */
  reset(): void;
  /** Nothing arrives on either side, and no side notices, until `heal`. */
  hold(): void;
  /** New connections, and held ones, work again. */
  heal(): void;
}

/** Open a line to a port of 127.0.0.1. */
export async function openTcpLine(target: number): Promise<TcpLine> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let isHeld = false;
  const track = (socket: Socket, other: () => Socket): void => {
    sockets.add(socket);
    // Broken connections end with errors.
    socket.on("error", () => {});
    socket.once("close", () => {
      sockets.delete(socket);
      other().destroy();
    });
    socket.setNoDelay();
    if (isHeld) socket.pause();
  };
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = connect(target, "127.0.0.1");
    track(near, () => far);
    track(far, () => near);
    // By hand: pipes resume paused streams.
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => near.write(data));
    if (isHeld) for (const socket of [near, far]) socket.pause();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const reset = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const line: TcpLine = {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
      reset();
    },
    reset,
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    heal() {
      isCut = isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    async [Symbol.asyncDispose]() {
      reset();
      server.close();
      await once(server, "close");
    },
  };
  return line;
}
