import type { App, Port } from "@portico/core";

/**
 * `port` of the apps of a cluster, as if they were one app. Calls go to the first app. A method that a test replaces, as `vi.spyOn` does,
 * is replaced in every app, until the test restores it.
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

function asOne<T extends object>(instances: readonly T[]): T {
  const first = instances[0]!;
  /** The methods that a test was given. */
  const given = new Map<PropertyKey, Method>();
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
    const bound = given.get(key) ?? special ?? method.bind(first);
    given.set(key, bound);
    return bound;
  };
  const putBack = (key: PropertyKey): boolean => {
    for (const [index, descriptor] of (before.get(key) ?? []).entries()) {
      if (descriptor) Object.defineProperty(instances[index]!, key, descriptor);
      else Reflect.deleteProperty(instances[index]!, key);
    }
    return before.delete(key) || true;
  };
  const put = (key: PropertyKey, descriptor: PropertyDescriptor): boolean => {
    const own = before.get(key) ?? instances.map((each) => Object.getOwnPropertyDescriptor(each, key));
    const { value } = descriptor;
    if (value === given.get(key) || (value !== undefined && value === own[0]?.value)) return putBack(key);
    before.set(key, own);
    return instances.every((each) => Reflect.defineProperty(each, key, { ...descriptor, configurable: true }));
  };

  return new Proxy(first, {
    get(_first, key) {
      const value: unknown = Reflect.get(first, key);
      return typeof value === "function" && !before.has(key) ? methodOf(key, value as Method) : value;
    },
    set: (_first, key, value) => put(key, { value, writable: true, enumerable: true }),
    defineProperty: (_first, key, descriptor) => put(key, descriptor),
    deleteProperty: (_first, key) => putBack(key),
  });
}
