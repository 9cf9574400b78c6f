import * as v from "valibot";
import type { Adapter } from "./adapter.ts";
import { areaOf } from "./area-of.ts";
import { builtIn } from "./built-in.ts";
import { Container } from "./container.ts";
import { NodePathTable } from "./http/node-path-table.ts";
import { type InstalledRoute, sayings } from "./http/pipeline.ts";
import type { Plugin } from "./plugin.ts";
import type { Needs, Port } from "./port.ts";
import { areas, clock, ids, nodePaths, telemetry } from "./ports/index.ts";
import { flattenPreset, type Preset } from "./preset.ts";
import type { Contract, Guards, RouteContract } from "./route.ts";
import type { PluginScope, Scope } from "./scope.ts";
import { createSurface, type Fetch, type Surface, type SurfaceBuilder } from "./surface.ts";

/** A preset running. */
export interface App extends AsyncDisposable {
  readonly name: string;
  /** The fetch of the app's only surface; throws where there are several. */
  readonly fetch: Fetch;
  /** One surface by its name; throws where there is none of that name. */
  surface(name: string): Surface;
  /** Names of all surfaces, in the order in which plugins brought them; those that only have Node paths come last. */
  readonly surfaces: readonly string[];
  /** The contracts of every plugin by plugin name: what documents and clients are derived from. */
  readonly contracts: Readonly<Record<string, Contract>>;
  /** Whether an adapter fills a port. */
  has<T>(port: Port<T>): boolean;
  /** What the adapters made, for hosts and command lines that use a port directly. Throws where no adapter fills it. */
  port<T>(port: Port<T>): T;
  /** Close everything that was opened, last in first out. Twice is once. Throws an AggregateError of what did not close. */
  close(): Promise<void>;
}

/**
 * Open the adapters in the order of their needs, then set the plugins up. Whatever fails undoes what was opened and throws one
 * sentence that says what is missing or wrong.
 */
export async function createApp(preset: Preset): Promise<App> {
  const { name, adapters, plugins, surfaces: options } = flattenPreset(preset);
  const container = new Container();
  const surfaces = new Map<string, SurfaceBuilder>();
  const served = new NodePathTable();
  const { scope, ready, close } = createScope(name);
  scope.onClose(() => container.dispose());

  try {
    assertNamedOnce(name, plugins);
    container.put(nodePaths, served);
    container.put(areas, plugins.map(areaOf));
    for (const adapter of inOrder(adapters)) {
      assertFilled(`Adapter "${adapter.name}"`, adapter.spec.needs, container);
      container.put(adapter.spec.port, await adapter.spec.open(container.give(adapter.spec.needs), adapter.options, scope));
    }
    const services = {
      clock: container.has(clock) ? container.get(clock) : builtIn.clock,
      ids: container.has(ids) ? container.get(ids) : builtIn.ids,
      telemetry: container.has(telemetry) ? container.get(telemetry) : builtIn.telemetry,
    };
    const surfaceOf = (surface: string) => {
      const known = surfaces.get(surface) ?? createSurface(surface, services, served.of(surface), options[surface]);
      surfaces.set(surface, known);
      return known;
    };
    const pluginScope = { ...scope, plugins: plugins.map((plugin) => plugin.name) };
    for (const plugin of plugins) await install(plugin, container, surfaceOf, pluginScope);
    for (const surface of served.surfaces) surfaceOf(surface);
    await ready();
    // The last to be opened: nothing that a source reads from is closed before its readers are gone.
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
      assertFilled(`App "${name}"`, { port }, container);
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
  scope: PluginScope,
): Promise<void> {
  const { spec } = plugin;
  assertFilled(`Plugin "${spec.name}"`, spec.needs, container);
  const config = v.safeParse(spec.config, plugin.options);
  if (!config.success) {
    const lines = config.issues.map(
      (issue) => `  ${v.getDotPath(issue) ?? "(options)"}: expected ${issue.expected ?? "another value"}`,
    );
    throw new Error(`Plugin "${spec.name}" was given options that it does not take:\n${lines.join("\n")}`);
  }
  const given = container.give(spec.needs as Needs);
  const guards: Guards = spec.guards?.(given, config.output) ?? {};
  const handlers = (await spec.setup(given, config.output, scope)) as Readonly<Record<string, InstalledRoute["handler"]>>;
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

function assertFilled(who: string, needs: Needs, container: Container): void {
  for (const port of Object.values(needs)) {
    if (!port.many && !container.has(port))
      throw new Error(`${who} needs port "${port.id}", which no adapter of this preset fills`);
  }
}

/** Two plugins of one name would hide each other's contract. */
function assertNamedOnce(preset: string, plugins: readonly Plugin[]): void {
  const names = plugins.map((plugin) => plugin.name);
  const twice = names.find((each, index) => names.indexOf(each) !== index);
  if (twice !== undefined) throw new Error(`Plugin "${twice}" stands twice in preset "${preset}"`);
}

/** Adapters may be built on ports that other adapters fill: those open first. */
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
