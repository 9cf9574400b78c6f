import type { Adapter } from "./adapter.ts";
import { areaOf, type Plugin, pluginConfig } from "./plugin.ts";
import { builtIn, PathTable, ReadinessChecks } from "./app-ports.ts";
import { Container, type HostContainer } from "./container.ts";
import { refuseMissingPorts } from "./missing-ports.ts";
import { type InstalledRoute, sayings } from "../http/pipeline.ts";
import { guardedPort, guardedTelemetry } from "./guarded-ports.ts";
import type { Given, Needs, Port } from "./port.ts";
import {
  areas,
  audit,
  clock,
  ids,
  type Log,
  type NodePath,
  nodePaths,
  readiness,
  telemetry,
  type Telemetry,
  type WebSocketPath,
  webSocketPaths,
} from "../ports/index.ts";
import { allAdapters, flattenPreset, type Preset } from "./preset.ts";
import { Refusals } from "./audit.ts";
import type { Contract, Guards, RouteContract } from "./contract.ts";
import type { Scope } from "./scope.ts";
import { createSurface, type SurfaceBuilder } from "../http/create-surface.ts";
import type { Fetch, Surface } from "../http/surface.ts";

/** A running preset. */
export interface App extends AsyncDisposable {
  readonly name: string;
  /** The fetch function of the app's only surface. Throws if there are several. */
  readonly fetch: Fetch;
  /** One surface by its name. Throws for an unknown name. */
  surface(name: string): Surface;
  /** Names of all surfaces, in the order in which plugins added them. Surfaces that have only Node paths come last. */
  readonly surfaces: readonly string[];
  /** The contracts of every plugin by plugin name. Documents and clients are derived from them. */
  readonly contracts: Readonly<Record<string, Contract>>;
  /** Whether an adapter fills a port. */
  has<T>(port: Port<T>): boolean;
  /**
   * The instance that an adapter made, for hosts and command lines that use a port directly. Throws if no adapter fills the port.
   */
  port<T>(port: Port<T>): T;
  /**
   * Close everything that was opened, in reverse order. A second call has no effect. Throws an AggregateError of the parts that
   * did not close.
   */
  close(): Promise<void>;
}

/** Options of an app, besides its preset. */
export interface AppOptions {
  /**
   * The host's own tsyringe container. While the app is open, its ports resolve there under `portToken(port)`, so that the host's
   * classes get them injected. After the app has closed, resolving throws. Two apps cannot share one container: the second is
   * refused.
   */
  readonly container?: HostContainer;
}

/**
 * Open the adapters in the order of their needs, then set the plugins up. If a step fails, closes everything that was opened and
 * throws one sentence that names the wrong part. Ports without an adapter are all named in one error, before anything is opened.
 */
export async function createApp(preset: Preset, { container: host }: AppOptions = {}): Promise<App> {
  const flat = flattenPreset(preset);
  const { name, plugins, surfaces: options } = flat;
  const adapters = allAdapters(flat);
  const container = new Container();
  const surfaces = new Map<string, SurfaceBuilder>();
  const served = { node: new PathTable<NodePath>(), webSocket: new PathTable<WebSocketPath>() };
  const { scope, ready, close } = createScope(name);

  try {
    assertNamedOnce(name, plugins);
    container.put(nodePaths, served.node);
    container.put(webSocketPaths, served.webSocket);
    container.put(readiness, new ReadinessChecks());
    container.put(areas, plugins.map(areaOf));
    for (const [port, standIn] of [
      [clock, builtIn.clock],
      [ids, builtIn.ids],
      [telemetry, builtIn.telemetry],
    ] as const) {
      if (!adapters.some(({ spec }) => spec.port.id === port.id)) container.put<unknown>(port, standIn);
    }
    const filled = new Set(adapters.map(({ spec }) => spec.port.id));
    const isFilled = ({ id }: Port<unknown>) => filled.has(id) || container.has({ id, many: false });
    refuseMissingPorts(name, adapters, plugins, isFilled);
    for (const adapter of inOrder(adapters)) {
      const instance: unknown = await adapter.spec.open(
        givenTo(adapter.broughtBy ?? adapter.name, adapter.spec.needs, container),
        adapter.options,
        scope,
      );
      const isTelemetry = adapter.spec.port.id === telemetry.id;
      container.put<unknown>(adapter.spec.port, isTelemetry ? guardedTelemetry(instance as Telemetry) : instance);
    }
    const services = {
      ...{ clock: container.get(clock), ids: container.get(ids), telemetry: container.get(telemetry) },
      refused: noteRefusals(container, scope),
    };
    const pathsOf = (surface: string) => ({ node: served.node.of(surface), webSocket: served.webSocket.of(surface) });
    const surfaceOf = (surface: string) => {
      const known = surfaces.get(surface) ?? createSurface(surface, services, pathsOf(surface), options[surface]);
      surfaces.set(surface, known);
      return known;
    };
    for (const plugin of plugins) {
      await install(plugin, container, surfaceOf, scope);
    }
    for (const surface of [...served.node.surfaces, ...served.webSocket.surfaces]) surfaceOf(surface);
    await ready();
    flat.onOpen({ name, adapters });
    if (host) container.expose(host, name, scope);
    // Opened last, so closed first: event sources close only after their readers are gone.
    scope.onClose(() => surfaces.forEach((surface) => surface.endEventStreams()));
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }

  return {
    name,
    surfaces: [...surfaces.keys()],
    contracts: Object.fromEntries(plugins.map((plugin) => [plugin.name, plugin.spec.contract])),
    fetch(request) {
      if (surfaces.size !== 1) {
        throw new Error(
          `App "${name}" has the surfaces ${[...surfaces.keys()].join(", ") || "(none)"}: pick one with app.surface(name)`,
        );
      }
      return [...surfaces.values()][0]!.fetch(request);
    },
    surface(wanted) {
      const surface = surfaces.get(wanted);
      if (!surface)
        throw new Error(`App "${name}" has no surface "${wanted}"; it has ${[...surfaces.keys()].join(", ") || "none"}`);
      return surface;
    },
    has: (port) => container.has(port),
    port(port) {
      if (!port.many && !container.has(port)) throw new Error(`App "${name}" has no adapter for the port "${port.id}"`);
      return container.get(port);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function install(
  plugin: Plugin,
  container: Container,
  surfaceOf: (name: string) => SurfaceBuilder,
  scope: Scope,
): Promise<void> {
  const { spec } = plugin;
  const config = pluginConfig(plugin);
  const given = givenTo(spec.name, spec.needs as Needs, container);
  const guards: Guards = spec.guards?.(given, config) ?? {};
  const handlers = (await spec.setup(given, config, scope)) as Readonly<Record<string, InstalledRoute["handler"]>>;
  for (const [key, contract] of Object.entries(spec.contract as Record<string, RouteContract>)) {
    const handler = handlers[key];
    if (!handler) throw new Error(`Plugin "${spec.name}" has no handler for "${key}" of its contract`);
    const guard = guards[contract.auth];
    if (!guard && contract.auth !== "open") {
      throw new Error(`Plugin "${spec.name}" has no guard "${contract.auth}", which "${key}" of its contract asks for`);
    }
    const say = contract.success.kind === "events" ? sayings(contract.success.events) : {};
    surfaceOf(contract.surface).add({ key: `${spec.name}.${key}`, area: spec.name, contract, guard, handler, say });
  }
}

/** The ports of a plugin or of an adapter. Its log lines name it, and what it hands in cannot end the process. */
function givenTo(part: string, needs: Needs, container: Container): Given<Needs> {
  const guarded = ({ id }: Port<unknown>, instance: unknown) =>
    instance === undefined ? undefined : guardedPort(id, instance, part, logOf(container));
  const given = container.give(needs);
  return Object.fromEntries(
    Object.entries(needs).map(([key, port]) => {
      const instance: unknown = given[key];
      return [key, port.isLater ? () => guarded(port, (instance as () => unknown)()) : guarded(port, instance)];
    }),
  ) as Given<Needs>;
}

/** The log of the app, whose adapter may open later than the part that logs. */
function logOf(container: Container): Log {
  const log = () => (container.has(telemetry) ? container.get(telemetry) : builtIn.telemetry).log;
  return {
    debug: (message, fields) => log().debug(message, fields),
    info: (message, fields) => log().info(message, fields),
    warn: (message, fields, cause) => log().warn(message, fields, cause),
    error: (message, fields, cause) => log().error(message, fields, cause),
  };
}

/** With an audit, it records refused calls. */
function noteRefusals(container: Container, scope: Scope): Refusals["note"] | undefined {
  if (!container.has(audit)) return undefined;
  const given = { audit: container.get(audit), clock: container.get(clock), telemetry: container.get(telemetry) };
  const refusals = new Refusals(given);
  scope.onClose(() => refusals.close());
  return (surface, head) => refusals.note(surface, head);
}

/** Two plugins with the same name would hide each other's contract. */
function assertNamedOnce(preset: string, plugins: readonly Plugin[]): void {
  const names = plugins.map((plugin) => plugin.name);
  const twice = names.find((each, index) => names.indexOf(each) !== index);
  if (twice !== undefined) throw new Error(`Plugin "${twice}" is listed twice in preset "${preset}"`);
}

/** An adapter may need ports that other adapters fill: those adapters open first. */
function inOrder(adapters: readonly Adapter[]): Adapter[] {
  const done = new Set<Adapter>();
  const path: Adapter[] = [];
  const visit = (adapter: Adapter) => {
    if (done.has(adapter)) return;
    if (path.includes(adapter)) {
      throw new Error(
        `Adapters need each other in a circle: ${[...path.slice(path.indexOf(adapter)), adapter].map((each) => each.name).join(" -> ")}`,
      );
    }
    path.push(adapter);
    for (const port of Object.values(adapter.spec.needs as Needs)) {
      if (port.isLater) continue;
      for (const other of adapters) if (other.spec.port.id === port.id) visit(other);
    }
    path.pop();
    done.add(adapter);
  };
  for (const adapter of adapters) visit(adapter);
  return [...done];
}

function createScope(name: string): { scope: Scope; ready: () => Promise<void>; close: () => Promise<void> } {
  const undo: Array<() => unknown> = [];
  const whenReady: Array<() => unknown> = [];
  let closing: Promise<void> | undefined;
  const closeAll = async () => {
    const failures: unknown[] = [];
    for (const step of undo.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, `App "${name}" did not close cleanly`);
  };
  return {
    scope: { onClose: (step) => void undo.push(step), onReady: (run) => void whenReady.push(run) },
    async ready() {
      for (const run of whenReady) await run();
    },
    close: () => (closing ??= closeAll()),
  };
}
