import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Surface } from "../surface.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";

export interface Attachment {
  /**
   * Upgraded connections of this surface that are still open. `server.close()` waits for them, and `server.closeAllConnections()` does not
   * know them: whoever closes the server ends them, or closes the app first.
   */
  readonly open: ReadonlySet<Duplex>;
  /** Take no further upgrade for this surface. Open connections stay. */
  detach(): void;
}

/**
 * Hand a Node server's WebSocket upgrades to a surface; its requests go there by `toNodeHandler`. Any number of surfaces may share one server.
 * `under` is where the host mounted the surface, for example `/agent`, and is taken off the path. Requests that ask for another protocol,
 * or for a path that nothing serves, stay ordinary requests where Node can decide on that (24.9 and later), and are refused before.
 * Upgrades that belong to nobody here are left to the host's own listeners.
 */
export function attach(
  server: Server,
  surface: Pick<Surface, "upgrade" | "isHeldOpen">,
  { under = "" }: { readonly under?: string } = {},
): Attachment {
  const known = upgrades.get(server) ?? new ServerUpgrades(server);
  upgrades.set(server, known);
  const attached: Attached = { surface, under, open: new Set() };
  known.add(attached);
  return { open: attached.open, detach: () => known.remove(attached) };
}

interface Attached {
  readonly surface: Pick<Surface, "upgrade" | "isHeldOpen">;
  readonly under: string;
  readonly open: Set<Duplex>;
}

/** Node's own decision whether a request is an upgrade; its types follow later versions only. */
interface Deciding {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean;
}

/** Two listeners that both answer would break each other's connections, so that a server gets one for all of its surfaces. */
const upgrades = new WeakMap<Server, ServerUpgrades>();

class ServerUpgrades {
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
    const server = this.#server;
    const deciding = server as Deciding;
    const before = deciding.shouldUpgradeCallback;
    const decide = (request: IncomingMessage) =>
      this.#find(request) !== undefined || (this.#isShared() && before!.call(server, request));
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#take(request, socket, head);
    if (before) deciding.shouldUpgradeCallback = decide;
    server.on("upgrade", onUpgrade);
    return () => {
      server.off("upgrade", onUpgrade);
      if (before && deciding.shouldUpgradeCallback === decide) deciding.shouldUpgradeCallback = before;
    };
  }

  #take(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const found = this.#find(request);
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

  #find(request: IncomingMessage): { readonly attached: Attached; readonly url: string } | undefined {
    if (request.headers.upgrade?.toLowerCase() !== "websocket") return undefined;
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

function below(under: string, url: string): string | undefined {
  return url.startsWith(`${under}/`) ? url.slice(under.length) : undefined;
}
