import { createServer, type Server } from "node:http";
import { isIPv6 } from "node:net";
import type { App } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import type { ListenAddress } from "../settings/listen.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

export interface Listeners {
  /** Surface name to URL, in the order of the app's surfaces. */
  readonly urls: Readonly<Record<string, string>>;
  /**
   * Accept nothing new, let what is in flight finish for up to `graceMs`, then cut it. Event streams and realtime connections would never
   * finish: they are ended when `working` is over, the latter when nothing else is left, and their clients look for the service again. Answers
   * how many other requests were cut.
   */
  drain(graceMs: number, working?: Promise<unknown>): Promise<number>;
}

/** Where a surface listens of which nothing is said (open points 1). */
const THIS_MACHINE: ListenAddress = { host: "127.0.0.1", port: 0 };

/** Longest wait for a request's head. Bodies and answers may take as long as they take: each area has its own limits on silence. */
const HEADERS_MS = 30_000;
/** Longer than load balancers usually keep an idle connection, so that the closing is theirs. */
const KEEP_ALIVE_MS = 75_000;

/** What event streams and realtime connections get to carry the last words of work that has ended. */
const LAST_WORDS_MS = 250;

/** While a listener drains, connections are looked at so often. */
const SWEEP_MS = 25;

/** What follows a surface's address in its URL: clients of the proxy are given the version, too (open points 1). */
const BASE_PATHS: Readonly<Record<string, string>> = { proxy: "/v1" };

/** Open one listener per surface. A port that is taken is an error, never another port: throws CommandFailed (69). */
export async function openListeners(app: App, addresses: Readonly<Record<string, ListenAddress>>): Promise<Listeners> {
  const open: Listener[] = [];
  const drain = async (graceMs: number, working: Promise<unknown> = Promise.resolve()) =>
    (await Promise.all(open.map((listener) => listener.drain(graceMs, working)))).reduce((sum, cut) => sum + cut, 0);
  try {
    for (const surface of app.surfaces) {
      open.push(await openListener(app, surface, addresses[surface] ?? THIS_MACHINE));
    }
  } catch (error) {
    await drain(0);
    throw error;
  }
  return { urls: Object.fromEntries(open.map(({ surface, url }) => [surface, url])), drain };
}

/** A URL for a host and a port. A listener on every address is reached at this machine's own. */
export function urlOf(host: string, port: number, path = ""): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}${path}`;
}

interface Listener extends Pick<Listeners, "drain"> {
  readonly surface: string;
  readonly url: string;
}

async function openListener(app: App, surface: string, address: ListenAddress): Promise<Listener> {
  const target = app.surface(surface);
  const handler = toNodeHandler(target);
  let isDraining = false;
  const server = createServer(
    { requestTimeout: 0, headersTimeout: HEADERS_MS, keepAliveTimeout: KEEP_ALIVE_MS },
    (request, response) => {
      if (isDraining) response.shouldKeepAlive = false;
      handler(request, response);
    },
  );
  const { open: held } = attach(server, target);
  const endHeld = () => {
    for (const each of held) each.destroy();
  };
  const port = await listen(server, surface, address);

  return {
    surface,
    url: urlOf(address.host, port, BASE_PATHS[surface]),
    async drain(graceMs, working = Promise.resolve()) {
      isDraining = true;
      let isWorking = true;
      const workEnds = working.catch(() => {}).then(() => setTimeout(() => (isWorking = false), LAST_WORDS_MS));
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const countOthers = (tell: (others: number) => void) =>
        server.getConnections((_error, count) => tell(Math.max(count - held.size, 0)));
      // Nothing is kept per request for this: connections that become idle are looked for now that it matters.
      const sweep = setInterval(() => {
        if (!isWorking) target.endEventStreams();
        server.closeIdleConnections();
        countOthers((others) => others === 0 && !isWorking && endHeld());
      }, SWEEP_MS);
      let cut = 0;
      let timer = setTimeout(() => {
        // Also where work goes on to the last: an event stream is none of what is cut.
        target.endEventStreams();
        timer = setTimeout(() => {
          countOthers((others) => {
            cut = others;
            server.closeAllConnections();
          });
        }, 2 * SWEEP_MS);
      }, graceMs);
      await closed;
      clearTimeout(await workEnds);
      clearInterval(sweep);
      clearTimeout(timer);
      return cut;
    },
  };
}

function listen(server: Server, surface: string, { host, port }: ListenAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException) =>
      reject(new CommandFailed(listenFailure(cause, surface, { host, port }), EXIT.unavailable, cause));
    server.once("error", onError);
    server.listen({ host, port, exclusive: true }, () => {
      server.off("error", onError);
      const bound = server.address();
      resolve(typeof bound === "object" && bound ? bound.port : port);
    });
  });
}

function listenFailure({ code }: NodeJS.ErrnoException, surface: string, { host, port }: ListenAddress): string {
  const setting = `${surface}.listen`;
  if (code === "EADDRINUSE")
    return `${setting}: port ${port} on ${host} is taken: stop the program that has it, or set another port (0 lets the system choose)`;
  if (code === "EACCES")
    return `${setting}: this user may not listen on port ${port}: set one above 1023 (0 lets the system choose)`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `${setting}: this machine has no address ${host}`;
  return `${setting}: cannot listen on ${host} port ${port} (${code ?? "unknown reason"})`;
}
