// The only file that uses tsyringe. tsyringe does not load without the Reflect polyfill, which is therefore imported first.
import "reflect-metadata";
import { container, type DependencyContainer } from "tsyringe";
import type { Given, Needs, Port } from "./port.ts";
import type { Scope } from "./scope.ts";

/** The tsyringe container of a host application. */
export type HostContainer = DependencyContainer;

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

/** One child container per app. It holds ready instances only: no classes, no factories, no decorators. */
export class Container {
  readonly #box: DependencyContainer = container.createChildContainer();
  readonly #ports = new Map<string, Port<unknown>>();

  put<T>(port: Port<T>, instance: T): void {
    if (!port.many && this.has(port)) throw new Error(`Port "${port.id}" is filled by two adapters; a preset gives it one`);
    this.#box.registerInstance(port.id, instance);
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
    return this.#box.isRegistered(port.id);
  }

  /** A many-port without an adapter is an empty list. */
  get<T>(port: Port<T>): T {
    if (port.many) return (this.has(port) ? this.#box.resolveAll(port.id) : []) as T;
    return this.#box.resolve<T>(port.id);
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

  async dispose(): Promise<void> {
    await this.#box.dispose();
  }
}
