import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { NodeListener, Surface } from "../surface.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";

export interface Attachment {
  /**
   * What the surface answers beside its routes and is not over: upgraded connections, and requests that are held until there is something to
   * tell. `server.close()` waits for them, and `server.closeAllConnections()` does not know the former.
   */
  readonly open: ReadonlySet<Duplex | ServerResponse>;
  /** Take nothing further for this surface. What is open stays. */
  detach(): void;
  /**
   * For a server that is about to stop: take nothing further for this surface, cut what is open, and end the surface's event streams. The requests
   * that are left end by themselves, so that `server.close()` comes to an end, and the app may be closed after it.
   */
  close(): void;
}

type Attachable = Pick<Surface, "node" | "upgrade" | "isHeldOpen" | "endEventStreams">;

/**
 * Hand to a surface what it answers on Node itself, as realtime channels do: the server's WebSocket upgrades and requests on those paths. They
 * go there before the host's own listener, so that this works whatever framework it belongs to, also where that gives handlers web requests
 * alone; call it when the host has its listener. All other requests stay with the host, which has the surface's routes mounted.
 * Any number of surfaces may share one server. `under` is where the host mounted the surface, for example `/agent`, and is taken off the path.
 * Requests that ask for another protocol, or for a path that nothing serves, stay ordinary requests where Node can decide on that (24.9 and
 * later), and are refused before. Upgrades that belong to nobody here are left to the host's own listeners.
 */
export function attach(server: Server, surface: Attachable, { under = "" }: { readonly under?: string } = {}): Attachment {
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

/** Node's own decision whether a request is an upgrade; its types follow later versions only. */
interface Deciding {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean;
}

/** Two listeners that both answer would break each other's connections, so that a server gets one for all of its surfaces. */
const takeovers = new WeakMap<Server, Takeover>();

class Takeover {
  readonly #server: Server;
  readonly #all = new Set<Attached>();
  #undo = () => {};

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
      if (!this.#isShared()) refuseUpgrade(socket, 404, { error: "not_found", message: "Not found" });
      return;
    }
    const { surface, open } = found.attached;
    // Node takes its own listeners off: without one, a caller that resets the connection would end the process.
    socket.on("error", () => {});
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    request.url = found.url;
    surface.upgrade(request, socket, head);
  }

  #findUpgrade(request: IncomingMessage): Found | undefined {
    return request.headers.upgrade?.toLowerCase() === "websocket" ? this.#find(request) : undefined;
  }

  #find(request: IncomingMessage): Found | undefined {
    for (const attached of this.#all) {
      const url = below(attached.under, request.url ?? "/");
      if (url !== undefined && attached.surface.isHeldOpen({ url })) return { attached, url };
    }
    return undefined;
  }

  /** Whether the host listens for upgrades, too. */
  #isShared(): boolean {
    return this.#server.listenerCount("upgrade") > 1;
  }
}

/** Whose a request is, and the surface's own path and query. */
interface Found {
  readonly attached: Attached;
  readonly url: string;
}

function below(under: string, url: string): string | undefined {
  return url.startsWith(`${under}/`) ? url.slice(under.length) : undefined;
}
