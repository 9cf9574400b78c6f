import type { Given, Needs, Port } from "./port.ts";
import type { Scope } from "./scope.ts";

/**
 * The container of a host application, as far as an app uses it: `DependencyContainer` of tsyringe has this shape. The host loads tsyringe,
 * with the polyfill `reflect-metadata` that tsyringe requires.
 */
export interface HostContainer {
  /** Registers a factory that is called at each resolving of the token. */
  register<T>(token: PortToken<T>, provider: { useFactory(): T }): unknown;
}

/**
 * The token of a port in a host's container. Its type is a class, so that the resolved value has the port's type. It is never
 * constructed.
 */
export type PortToken<T> = new (...given: any[]) => T;

const tokens = new Map<string, PortToken<any>>();
/** For each host container: the open app that provides each port. */
const owners = new WeakMap<HostContainer, Map<string, { readonly app: string; isOpen: boolean }>>();

/**
 * The token of a port in the container of a host that uses tsyringe (`createApp(preset, { container })`):
 * `container.resolve(portToken(ports.records))`, or `@inject(portToken(ports.records))` on a constructor's parameter. A many-port
 * resolves to its list.
 */
export function portToken<T>({ id }: Port<T>): PortToken<T> {
  const known = tokens.get(id);
  if (known) return known as PortToken<T>;
  const token = function (): never {
    throw new Error(`Port "${id}" is filled by no app of this container`);
  } as unknown as PortToken<T>;
  tokens.set(id, token);
  return token;
}

/** The open instances of one app under the ids of their ports. */
export class Container {
  /** By id of the port. Only a many-port has several. */
  readonly #instances = new Map<string, unknown[]>();
  readonly #ports = new Map<string, Port<unknown>>();

  put<T>(port: Port<T>, instance: T): void {
    const others = this.#instances.get(port.id) ?? [];
    if (!port.many && others.length > 0) {
      throw new Error(`Port "${port.id}" is filled by two adapters; a preset gives it one`);
    }
    this.#instances.set(port.id, [...others, instance]);
    this.#ports.set(port.id, port);
  }

  /**
   * Let every port resolve in a host's container until the app closes. Throws a sentence if another open app already has a port
   * there, because one would hide the other.
   */
  expose(host: HostContainer, app: string, scope: Scope): void {
    const known = owners.get(host) ?? new Map();
    owners.set(host, known);
    const owner = { app, isOpen: true };
    scope.onClose(() => void (owner.isOpen = false));
    for (const port of this.#ports.values()) {
      const other = known.get(port.id);
      if (other?.isOpen) {
        throw new Error(
          `App "${other.app}" has its ports in this container: give "${app}" one of its own (container.createChildContainer())`,
        );
      }
    }
    for (const port of this.#ports.values()) {
      known.set(port.id, owner);
      host.register(portToken(port), {
        useFactory: () => {
          if (!owner.isOpen) throw new Error(`App "${app}" is closed, and its port "${port.id}" with it`);
          return this.get(port);
        },
      });
    }
  }

  has(port: Port<unknown>): boolean {
    return this.#instances.has(port.id);
  }

  /** A many-port without an adapter is an empty list. Throws for another port without an adapter. */
  get<T>(port: Port<T>): T {
    const found = this.#instances.get(port.id);
    if (port.many) return (found ?? []) as T;
    if (!found) throw new Error(`Port "${port.id}" is filled by no adapter of this app`);
    return found[0] as T;
  }

  give<N extends Needs>(needs: N): Given<N> {
    return Object.fromEntries(Object.entries(needs).map(([key, port]) => [key, this.#instanceOf(port)])) as Given<N>;
  }

  #instanceOf(port: Port<unknown>): unknown {
    const { id, many, isOptional } = port;
    const isMissing = () => !many && !this.has(port);
    if (!port.isLater) return isOptional && isMissing() ? undefined : this.get(port);
    return () => {
      if (isOptional && isMissing()) return undefined;
      if (isMissing()) throw new Error(`Port "${id}" was asked for before its adapter was open`);
      return this.get({ id, many });
    };
  }
}
