import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** The treatment of a connection, chosen by its first line. */
export type Fate = "through" | "lost before it arrives" | "lost after it arrived";

/** A line between a client and a service, which the test breaks. */
export interface BrokenLine extends AsyncDisposable {
  readonly url: string;
  /** Where it leads; while undefined, every connection is refused as by a service that is down. */
  target: string | undefined;
  /** Decides by the first line of each new connection, for example `POST /api/query/start HTTP/1.1`. Default: through. */
  fate: (firstLine: string) => Fate;
  /** From now on no data arrive at the connected clients, and the service does not notice, until the next `cut`. */
  hold(): void;
  /** Breaks the open connections. */
  cut(): void;
}

export async function openBrokenLine(target?: string): Promise<BrokenLine> {
  const open = new Set<Socket>();
  const ways = new Map<Socket, Socket>();
  let isHeld = false;
  const server = createServer((near) => {
    track(near, open);
    near.once("data", (first: Buffer) => {
      if (line.target === undefined) return void near.destroy();
      const fate = line.fate(first.toString("latin1").split("\r\n", 1)[0] ?? "");
      if (fate === "lost before it arrives") return void near.destroy();
      const far = connect(Number(new URL(line.target).port), "127.0.0.1");
      track(far, open);
      far.write(first);
      near.pipe(far);
      if (fate === "lost after it arrived") far.once("data", () => near.destroy());
      else if (isHeld) far.resume();
      else far.pipe(near);
      ways.set(far, near);
      far.once("close", () => ways.delete(far));
      near.once("close", () => far.destroy());
      far.once("close", () => near.destroy());
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const line: BrokenLine = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    fate: () => "through",
    hold() {
      isHeld = true;
      for (const [far, near] of ways) far.unpipe(near).resume();
    },
    cut() {
      isHeld = false;
      for (const socket of open) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      line.cut();
      server.close();
      await once(server, "close");
    },
  };
  return line;
}

function track(socket: Socket, open: Set<Socket>): void {
  open.add(socket);
  socket.once("close", () => open.delete(socket));
  // A caller that breaks connections gets errors of broken connections.
  socket.on("error", () => {});
}
