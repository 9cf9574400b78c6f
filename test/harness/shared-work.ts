import { memoryEngine } from "@portico/adapters/engine/memory";
import { type Adapter, defineAdapter, ports } from "@portico/core";

type Kind = Parameters<ports.Engine["define"]>;

interface Member {
  readonly name: string;
  readonly engine: ports.Engine;
  readonly kinds: Map<string, { readonly options: Kind[2] }>;
  readonly open: Map<string, { readonly kind: string; readonly input: object }>;
  readonly fencing: AbortController;
}

/**
 * Work that several apps of one process share, as processes of a cluster do. Each app has an engine in memory. A test says which app executes
 * what, and which one is lost.
 */
export interface SharedWork {
  /** The engine of one app. */
  engineOf(name: string): Adapter;
  /** Which app executes work that is accepted from now on; undefined: the one that accepts it. */
  route(choose: (kind: string, input: any) => string | undefined): void;
  /** An app loses its work: it is fenced, and another app closes what executed there. */
  lose(name: string, survivor: string): Promise<void>;
}

/** Work that no app shares yet. */
export function createSharedWork(): SharedWork {
  const members = new Map<string, Member>();
  let choose: (kind: string, input: object) => string | undefined = () => undefined;
  const everywhere = async <T>(ask: (engine: ports.Engine) => Promise<T>): Promise<T | undefined> => {
    for (const { engine } of members.values()) {
      const answer = await ask(engine);
      if (answer) return answer;
    }
    return undefined;
  };
  return {
    route: (chosen) => void (choose = chosen),
    engineOf(name) {
      const { spec } = memoryEngine({});
      return defineAdapter({
        name: "engine/shared-work",
        port: ports.engine,
        needs: spec.needs as Record<string, never>,
        async open(given: object, options: object, scope): Promise<ports.Engine> {
          const engine = (await spec.open(given as never, options, scope)) as ports.Engine;
          const member: Member = { name, engine, kinds: new Map(), open: new Map(), fencing: new AbortController() };
          members.set(name, member);
          scope.onClose(() => members.delete(name));
          return {
            ...bound(engine),
            process: name,
            isShared: true,
            define(kind, work, definition) {
              member.kinds.set(kind, { options: definition as Kind[2] });
              const fenced: typeof work = async (context, input) => {
                member.open.set(context.id, { kind, input });
                const signal = AbortSignal.any([context.signal, member.fencing.signal]);
                try {
                  return await work(
                    { ...bound(context), signal, id: context.id, attempt: context.attempt, held: context.held },
                    input,
                  );
                } finally {
                  member.open.delete(context.id);
                }
              };
              engine.define(kind, fenced, definition);
            },
            start: (kind, id, input, more) =>
              (members.get(choose(kind, input) ?? name) ?? member).engine.start(kind, id, input, more),
            signal: async (...signal) => (await everywhere((each) => each.signal(...signal))) ?? false,
            cancel: async (...cancel) => (await everywhere((each) => each.cancel(...cancel))) ?? false,
            status: (id) => everywhere((each) => each.status(id)),
          };
        },
      })({});
    },
    async lose(name, survivor) {
      const { open, fencing } = members.get(name)!;
      const lost = [...open];
      fencing.abort(new ports.EngineFenced("Another process executes the work"));
      for (const [id, { kind, input }] of lost) await members.get(survivor)!.kinds.get(kind)!.options.closed?.(id, input);
    },
  };
}

/** An object's own methods and those of its class, for a copy of it. */
function bound<T extends object>(object: T): T {
  const names = new Set<string>();
  for (let each: object = object; each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    for (const name of Object.getOwnPropertyNames(each)) names.add(name);
  }
  const methods = [...names].filter((name) => name !== "constructor" && typeof (object as any)[name] === "function");
  return Object.fromEntries(methods.map((name) => [name, (object as any)[name].bind(object)])) as T;
}
