import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { NodeListener, Surface } from "./surface.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { callerIdHeader } from "./answer-headers.ts";
import { withoutEnd } from "../kit/text.ts";

/** A surface that answers on a server of the host. */
export interface Attachment {
  /**
   * Open answers outside of the routes: upgraded connections, and long-held requests. `server.close()` waits for them, and
   * `server.closeAllConnections()` does not close upgraded connections.
   */
  readonly open: ReadonlySet<Duplex | ServerResponse>;
  /** Accept nothing further for this surface. Open connections stay open. */
  detach(): void;
  /**
   * For a server that is about to stop. Accepts nothing further for this surface, cuts the connections in `open`, and ends the
   * surface's event streams. Remaining requests end by themselves, so that `server.close()` completes. Close the app after that.
   */
  close(): void;
}

type Attachable = Pick<Surface, "node" | "upgrade" | "isHeldOpen" | "endEventStreams">;

/**
 * Hand to a surface the requests that it answers on Node itself, as realtime channels do: the server's WebSocket upgrades and the
 * requests on those paths. They bypass the host's own listener. This works with every framework, also if its handlers get only
 * web requests. Call it after the host has added its listener. All other requests stay with the host, which has the surface's
 * routes mounted.
 * Any number of surfaces may share one server. `under` is the path where the host mounted the surface, for example `/agent`, and
 * is removed from the path. `agent` and `/agent/` mean the same. Throws TypeError for a pattern, a URL, or a server that is not Node's. If an
 * upgrade for a path of the surface arrives, but not below `under`, a warning of the process says so once.
 * A request to upgrade to another protocol, or on a path that is not served, stays an ordinary request if Node lets the server
 * decide (24.9 and later). Earlier versions of Node refuse it. Upgrades for other paths are left to the host's own listeners.
 */
export function attach(server: Server, surface: Attachable, options: { readonly under?: string } = {}): Attachment {
  // Servers of other runtimes are not instances of Node's class. The application of a framework has no address.
  if (typeof (server as Partial<Server> | undefined)?.address !== "function" || typeof server.prependListener !== "function")
    throw new TypeError("attach needs the server of node:http that listens, such as the result of app.listen() in Express");
  const under = readMountPath(options);
  const known = takeovers.get(server) ?? new Takeover(server);
  takeovers.set(server, known);
  const attached: Attached = { surface, under, open: new Set() };
  known.add(attached);
  const detach = () => known.remove(attached);
  return {
    open: attached.open,
    detach,
    close() {
      detach();
      for (const each of attached.open) each.destroy();
      surface.endEventStreams();
    },
  };
}

interface Attached {
  readonly surface: Attachable;
  readonly under: string;
  readonly open: Set<Duplex | ServerResponse>;
}

/** Node's callback that decides whether a request is an upgrade. The types declare it in later versions only. */
interface Deciding {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean;
}

/**
 * Two listeners that both answer would break each other's connections. A server therefore gets one listener for all of its
 * surfaces.
 */
const takeovers = new WeakMap<Server, Takeover>();

class Takeover {
  readonly #server: Server;
  readonly #all = new Set<Attached>();
  #undo = () => {};
  #hasWarned = false;

  constructor(server: Server) {
    this.#server = server;
  }

  add(attached: Attached): void {
    if (this.#all.size === 0) this.#undo = this.#listen();
    this.#all.add(attached);
  }

  remove(attached: Attached): void {
    if (this.#all.delete(attached) && this.#all.size === 0) this.#undo();
  }

  #listen(): () => void {
    const giveRequestsBack = this.#listenToRequests();
    const giveUpgradesBack = this.#listenToUpgrades();
    return () => {
      giveRequestsBack();
      giveUpgradesBack();
    };
  }

  #listenToRequests(): () => void {
    const server = this.#server;
    const before = server.rawListeners("request") as NodeListener[];
    const onRequest = (request: IncomingMessage, response: ServerResponse) => {
      const found = this.#find(request);
      if (!found) {
        for (const listener of before) void listener.call(server, request, response);
        return;
      }
      const { surface, open } = found.attached;
      open.add(response);
      response.once("close", () => open.delete(response));
      request.url = found.url;
      void surface.node(request, response);
    };
    server.removeAllListeners("request").on("request", onRequest);
    return () => {
      server.off("request", onRequest);
      for (const listener of before) server.on("request", listener);
    };
  }

  #listenToUpgrades(): () => void {
    const server = this.#server;
    const deciding = server as Deciding;
    const before = deciding.shouldUpgradeCallback;
    const decide = (request: IncomingMessage) =>
      this.#findUpgrade(request) !== undefined || (this.#isShared() && before!.call(server, request));
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#take(request, socket, head);
    if (before) deciding.shouldUpgradeCallback = decide;
    server.on("upgrade", onUpgrade);
    return () => {
      server.off("upgrade", onUpgrade);
      if (before && deciding.shouldUpgradeCallback === decide) deciding.shouldUpgradeCallback = before;
    };
  }

  #take(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const found = this.#findUpgrade(request);
    if (!found) {
      if (!this.#isShared()) refuseUpgrade(socket, 404, { error: "not_found", message: "Not found" }, callerIdHeader(request));
      return;
    }
    const { surface, open } = found.attached;
    // Node removes its own listeners. Without a listener, a caller that resets the connection would end the process.
    socket.on("error", () => {});
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    request.url = found.url;
    surface.upgrade(request, socket, head);
  }

  #findUpgrade(request: IncomingMessage): Found | undefined {
    if (request.headers.upgrade?.toLowerCase() !== "websocket") return undefined;
    const found = this.#find(request);
    if (!found && !this.#hasWarned && !this.#isShared()) this.#warnOfOtherMount(request.url ?? "/");
    return found;
  }

  /** Says once that a host mounted a surface at another path than it attached it. */
  #warnOfOtherMount(url: string): void {
    for (const { surface, under } of this.#all) {
      const path = heldPathIn(surface, url);
      if (path === undefined) continue;
      this.#hasWarned = true;
      // The path above it came from a caller, so it is not repeated.
      process.emitWarning(
        `An upgrade for ${path} arrived, but not at ${under}${path}, where the surface is attached. Give attach the path at which the host mounts the surface: attach(server, surface, { under })`,
        { type: "PorticoWarning", code: "PORTICO_ATTACHED_ELSEWHERE" },
      );
      return;
    }
  }

  #find(request: IncomingMessage): Found | undefined {
    for (const attached of this.#all) {
      const url = below(attached.under, request.url ?? "/");
      if (url !== undefined && attached.surface.isHeldOpen({ url })) return { attached, url };
    }
    return undefined;
  }

  /** Whether the host also listens for upgrades. */
  #isShared(): boolean {
    return this.#server.listenerCount("upgrade") > 1;
  }
}

/** The surface of a request, and the path and query within the surface. */
interface Found {
  readonly attached: Attached;
  readonly url: string;
}

/** The path of a mount: empty, or `/agent`. */
function readMountPath(options: { readonly under?: string }): string {
  const given: unknown = typeof options === "object" && options !== null ? (options.under ?? "") : options;
  if (typeof options !== "object" || typeof given !== "string")
    throw new TypeError('attach takes the path of the mount as { under: "/agent" }');
  const path = withoutEnd(given.replace(/^\/+/, ""), "/");
  if (path === "") return "";
  if (path.split("/").every((segment) => SEGMENT.test(segment))) return `/${path}`;
  throw new TypeError(
    `attach cannot serve under ${JSON.stringify(given)}: give one fixed path, such as "/agent", without a pattern, a query or a host`,
  );
}

const SEGMENT = /^[\w\-.~!$&'(),;=@%]+$/;

/** The path of a surface that a longer path ends with. */
function heldPathIn(surface: Attachable, url: string): string | undefined {
  const end = url.indexOf("?");
  const path = (end < 0 ? url : url.slice(0, end)).slice(0, LONGEST_PATH);
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const rest = path.slice(at);
    if (surface.isHeldOpen({ url: rest })) return rest;
  }
  return undefined;
}

/** Longer paths are not searched for the path of a surface. */
const LONGEST_PATH = 1024;

function below(under: string, url: string): string | undefined {
  return url.startsWith(`${under}/`) ? url.slice(under.length) : undefined;
}
