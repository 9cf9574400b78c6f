// A balancer of a few lines, for one machine. In production, use nginx, HAProxy or your cloud's balancer.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Gives each connection to the next process, and to the one after it if a process is gone. */
export async function startBalancer() {
  let backends: readonly URL[] = [];
  let turn = 0;
  const open = new Set<Socket>();
  const pass = (near: Socket, [backend, ...others]: readonly URL[]): void => {
    if (!backend) return void near.destroy();
    const far = connect(Number(backend.port), backend.hostname);
    const onRefused = () => pass(near, others);
    far.once("error", onRefused);
    far.once("connect", () => {
      far.off("error", onRefused).on("error", () => near.destroy());
      far.once("close", () => near.destroy());
      near.once("close", () => far.destroy());
      near.pipe(far).pipe(near);
    });
  };
  const server = createServer({ noDelay: true }, (near) => {
    open.add(near);
    near.on("error", () => {});
    near.once("close", () => open.delete(near));
    const first = turn++;
    pass(
      near,
      backends.map((_, index) => backends[(first + index) % backends.length]!),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The processes, by their URLs. */
    use(urls: readonly string[]): void {
      backends = urls.map((url) => new URL(url));
    },
    close(): void {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
