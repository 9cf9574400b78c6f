import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { App, NodeListener, Surface } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import express from "express";

/** The two ways in which every surface can be hosted. */
export type HostKind = "node" | "fetch";
export const hostKinds: readonly HostKind[] = ["node", "fetch"];

export interface Host extends AsyncDisposable {
  /** Undefined on a fetch host, which has no address. */
  readonly origin: string | undefined;
  /** Call a path of the surface as a client would. */
  call(path: string, init?: RequestInit): Promise<Response>;
}

/** Hosts one surface of an app (default: its first) as a Node listener on a separate port, or as a fetch function. */
export async function openHost(kind: HostKind, app: App, surface: string = app.surfaces[0]!): Promise<Host> {
  if (kind === "node") return listen(toNodeHandler(app.surface(surface)));
  return {
    origin: undefined,
    call: async (path, init) => app.surface(surface).fetch(new Request(`http://test${path}`, init)),
    async [Symbol.asyncDispose]() {},
  };
}

/** A Node listener on a separate port. Closing it cuts open connections. */
export async function listen(listener: NodeListener): Promise<Host & { readonly origin: string }> {
  // Node cuts idle connections by its own clock, in whose place a test of cut connections has a clock that it moves.
  const server = createServer({ keepAliveTimeout: 0 }, listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    call: (path, init) => fetch(origin + path, init),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A host application that has the surface under a path, with its realtime channel. Closing cuts whatever is still open. */
export async function mountedUnder(under: string, surface: Surface): Promise<AsyncDisposable & { readonly url: string }> {
  const host = createServer(express().use(under, toNodeHandler(surface))).listen(0, "127.0.0.1");
  const attached = attach(host, surface, { under });
  await once(host, "listening");
  return {
    url: `http://127.0.0.1:${(host.address() as AddressInfo).port}${under}`,
    async [Symbol.asyncDispose]() {
      const closed = once(host, "close");
      host.close();
      attached.close();
      host.closeAllConnections();
      await closed;
    },
  };
}
