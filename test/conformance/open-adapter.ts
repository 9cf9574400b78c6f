import { type Adapter, createRandomIds, createSystemClock, type Filling, type Port, ports } from "@portico/core";

/** An adapter that stands open outside any app. */
export interface OpenAdapter<T> {
  readonly port: T;
  /** Undo what opening did, last in first out, the adapters it was built on included. */
  close(): Promise<void>;
}

type Undo = () => unknown;

/** Everything that the adapters asked for while they opened. */
interface Steps {
  readonly undo: Undo[];
  readonly ready: Array<() => unknown>;
}

/**
 * Open one adapter alone: `others` fill the ports that it, or they, ask for, and are opened only where they are asked for. As in an app, `clock`
 * and `ids` need no adapter.
 * Throws the error of opening, after everything is closed, and an Error that names a port without an adapter.
 */
export async function openAdapter<P extends Port<unknown>>(
  adapter: Adapter<P>,
  others: readonly Adapter[] = [],
): Promise<OpenAdapter<Filling<P>>> {
  const steps: Steps = { undo: [], ready: [] };
  const close = async (): Promise<void> => {
    for (const step of steps.undo.splice(0).reverse()) await step();
  };
  try {
    const port = (await openInto(steps, adapter, others, new Map())) as Filling<P>;
    for (const run of steps.ready) await run();
    return { port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openInto(
  steps: Steps,
  adapter: Adapter,
  others: readonly Adapter[],
  opened: Map<Adapter, Promise<unknown>>,
): Promise<unknown> {
  const given: Record<string, unknown> = {};
  const late: (readonly [name: string, need: Port<unknown>])[] = [];
  for (const [name, need] of Object.entries(adapter.spec.needs as Record<string, Port<unknown>>)) {
    if (need.isLater) late.push([name, need]);
    else given[name] = await fill(steps, adapter, need, others, opened);
  }
  for (const [name, need] of late) given[name] = bound(steps, adapter, need, others, opened);
  return adapter.spec.open(given, adapter.options, {
    onClose: (step) => steps.undo.push(step),
    onReady: (run) => steps.ready.push(run),
  });
}

/** What a need made with `later` answers, once the adapter is open. */
function bound(
  steps: Steps,
  asking: Adapter,
  need: Port<unknown>,
  others: readonly Adapter[],
  opened: Map<Adapter, Promise<unknown>>,
): () => unknown {
  let filled: { readonly value: unknown } | undefined;
  steps.ready.unshift(async () => {
    filled = { value: await fill(steps, asking, need, others, opened) };
  });
  return () => {
    if (!filled) throw new Error(`${asking.name} asked for the port ${need.id} before it was open`);
    return filled.value;
  };
}

async function fill(
  steps: Steps,
  asking: Adapter,
  need: Port<unknown>,
  others: readonly Adapter[],
  opened: Map<Adapter, Promise<unknown>>,
): Promise<unknown> {
  const fillings: unknown[] = [];
  for (const other of others.filter((candidate) => candidate.spec.port.id === need.id)) {
    const already = opened.get(other) ?? openInto(steps, other, others, opened);
    opened.set(other, already);
    fillings.push(await already);
  }
  if (need.many) return fillings;
  if (fillings.length === 0 && BUILT_IN.has(need.id)) return BUILT_IN.get(need.id);
  if (need.isOptional && fillings.length === 0) return undefined;
  if (fillings.length !== 1)
    throw new Error(`${asking.name} needs one adapter for the port ${need.id}; ${fillings.length} were given`);
  return fillings[0];
}

/** What an app has without an adapter. */
const BUILT_IN: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  [ports.clock.id, createSystemClock()],
  [ports.ids.id, createRandomIds()],
]);
