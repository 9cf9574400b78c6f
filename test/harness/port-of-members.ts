import { AsyncLocalStorage } from "node:async_hooks";
import type { App, Port } from "@portico/core";

/**
 * `port` of the apps of a cluster, as if they were one app. Calls go to the first app. A method that a test replaces, as `vi.spyOn` does,
 * is replaced in every app, until the test restores it. If the replacement calls the method, the call goes to the app that called.
 */
export function portOfMembers(apps: readonly App[]): App["port"] {
  const known = new Map<string, unknown>();
  return <T>(port: Port<T>): T => {
    const instances = apps.map((app) => app.port(port));
    if (typeof instances[0] !== "object") return instances[0]!;
    if (!known.has(port.id)) known.set(port.id, port.many ? listAsOne(instances as object[][]) : asOne(instances as object[]));
    return known.get(port.id) as T;
  };
}

/** Each adapter of a many-port. */
function listAsOne(lists: readonly (readonly object[])[]): readonly object[] {
  return lists[0]!.map((_, at) => asOne(lists.map((list) => list[at]!)));
}

/** The method that gives a part of the instance, which a test may change as well. */
const PART = "collection";
/** The method that is for the whole service. */
const FOR_ALL = "drain";

type Method = (...given: unknown[]) => unknown;

/** The number of the app that called what a test put in place of a method. */
const calling = new AsyncLocalStorage<number>();

function asOne<T extends object>(instances: readonly T[]): T {
  const first = instances[0]!;
  /** The methods that a test was given. */
  const given = new Map<PropertyKey, Method>();
  /** What a test put in place of methods. */
  const placed = new Map<PropertyKey, Method>();
  /** What every instance had of its own before a test changed it. */
  const before = new Map<PropertyKey, readonly (PropertyDescriptor | undefined)[]>();
  const parts = new Map<unknown, object>();

  const partsOf = (...arguments_: unknown[]): object => {
    const all = instances.map((each) => (each as Record<string, Method>)[PART]!(...arguments_) as object);
    const part = parts.get(all[0]) ?? asOne(all);
    parts.set(all[0], part);
    return part;
  };
  const inAll = (...arguments_: unknown[]): Promise<unknown> =>
    Promise.all(instances.map((each) => (each as Record<string, Method>)[FOR_ALL]!(...arguments_)));
  const methodOf = (key: PropertyKey, method: Method): Method => {
    const special = key === PART ? partsOf : key === FOR_ALL ? inAll : undefined;
    const bound =
      given.get(key) ?? special ?? ((...arguments_) => originalOf(key, method).apply(instances[caller()], arguments_));
    given.set(key, bound);
    return bound;
  };
  const caller = (): number => calling.getStore() ?? 0;
  /** The method that the calling app had before a test changed it. `method`: that of the first app. */
  const originalOf = (key: PropertyKey, method: Method): Method => {
    if (caller() === 0) return method;
    const own = before.has(key) ? before.get(key)![caller()]?.value : Reflect.get(instances[caller()]!, key);
    return own ?? Reflect.get(Object.getPrototypeOf(instances[caller()]), key);
  };
  const putBack = (key: PropertyKey): boolean => {
    for (const [index, descriptor] of (before.get(key) ?? []).entries()) {
      if (descriptor) Object.defineProperty(instances[index]!, key, descriptor);
      else Reflect.deleteProperty(instances[index]!, key);
    }
    placed.delete(key);
    return before.delete(key) || true;
  };
  const put = (key: PropertyKey, descriptor: PropertyDescriptor): boolean => {
    const own = before.get(key) ?? instances.map((each) => Object.getOwnPropertyDescriptor(each, key));
    const { value } = descriptor;
    if (value === given.get(key) || (value !== undefined && value === own[0]?.value)) return putBack(key);
    before.set(key, own);
    if (typeof value === "function") placed.set(key, value as Method);
    else placed.delete(key);
    return instances.every((each, at) => Reflect.defineProperty(each, key, { ...called(descriptor, at), configurable: true }));
  };

  return new Proxy(first, {
    get(_first, key) {
      const value: unknown = placed.get(key) ?? Reflect.get(first, key);
      return typeof value === "function" && !before.has(key) ? methodOf(key, value as Method) : value;
    },
    // What a spy calls if it has nothing else to do.
    getOwnPropertyDescriptor(_first, key) {
      const own = Reflect.getOwnPropertyDescriptor(first, key);
      if (!own?.configurable || typeof own.value !== "function") return own;
      return { ...own, value: placed.get(key) ?? methodOf(key, own.value as Method) };
    },
    set: (_first, key, value) => put(key, { value, writable: true, enumerable: true }),
    defineProperty: (_first, key, descriptor) => put(key, descriptor),
    deleteProperty: (_first, key) => putBack(key),
  });
}

/** The same property. If it is a function, it knows which app called it. */
function called(descriptor: PropertyDescriptor, at: number): PropertyDescriptor {
  const { value } = descriptor;
  if (typeof value !== "function") return descriptor;
  return {
    ...descriptor,
    value(this: unknown, ...given: unknown[]) {
      return calling.run(at, () => Reflect.apply(value, this, given));
    },
  };
}
