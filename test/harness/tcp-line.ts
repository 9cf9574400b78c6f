import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The treatment of data that a client sends. `hold`: the whole connection is held before the data. */
export type SentFate = "through" | "hold" | "answer lost";

/** A line between clients and a server of this machine, which the test breaks. */
export interface TcpLine extends AsyncDisposable {
  /** Where clients connect, on 127.0.0.1. */
  readonly port: number;
  /** Decides about each piece that a client sends. Default: through. */
  fate: (sent: string) => SentFate;
  /** Break all connections. New ones are refused until `heal`. */
  cut(): void;
  /** Break all connections. New ones are accepted. */
  reset(): void;
  /** No data arrive on either side, and no side notices, until `heal`. */
  hold(): void;
  /** No data arrive any more on the present connections, and no side notices until `heal` breaks them. New connections work. */
  forget(): void;
  /** New connections, and held ones, work again. */
  heal(): void;
}

/** Open a line to a port of 127.0.0.1. */
export async function openTcpLine(target: number): Promise<TcpLine> {
  const sockets = new Set<Socket>();
  const forgotten = new Set<Socket>();
  const held: (() => void)[] = [];
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
  };
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    const far = connect(target, "127.0.0.1");
    track(near, () => far);
    track(far, () => near);
    let losesAnswer = false;
    near.on("data", (data: Buffer) => {
      const fate = line.fate(data.toString("latin1"));
      if (fate === "hold") line.hold();
      losesAnswer ||= fate === "answer lost";
      if (isHeld) held.push(() => far.write(data));
      else far.write(data);
    });
    // By hand: pipes resume paused streams.
    far.on("data", (data) => (losesAnswer ? near.destroy() : near.write(data)));
    if (isHeld) for (const socket of [near, far]) socket.pause();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const line: TcpLine = {
    port: (server.address() as AddressInfo).port,
    fate: () => "through",
    cut() {
      isCut = true;
      line.reset();
    },
    reset() {
      for (const socket of sockets) socket.destroy();
    },
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    forget() {
      for (const socket of sockets) forgotten.add(socket.pause());
      sockets.clear();
    },
    heal() {
      isCut = isHeld = false;
      for (const socket of forgotten) socket.destroy();
      for (const send of held.splice(0)) send();
      for (const socket of sockets) socket.resume();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of [...sockets, ...forgotten]) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return line;
}
