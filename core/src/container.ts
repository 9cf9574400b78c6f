// The only file that knows tsyringe. It refuses to load without the Reflect polyfill, so that comes first.
import "reflect-metadata";
import { container, type DependencyContainer } from "tsyringe";
import type { Given, Needs, Port } from "./port.ts";

/** One child container per app, filled with ready instances only: no classes, no factories, no decorators. */
export class Container {
  readonly #box: DependencyContainer = container.createChildContainer();

  put<T>(port: Port<T>, instance: T): void {
    if (!port.many && this.has(port)) throw new Error(`Port "${port.id}" is filled by two adapters; a preset gives it one`);
    this.#box.registerInstance(port.id, instance);
  }

  has(port: Port<unknown>): boolean {
    return this.#box.isRegistered(port.id);
  }

  /** A many-port that nothing fills is an empty list. */
  get<T>(port: Port<T>): T {
    if (port.many) return (this.has(port) ? this.#box.resolveAll(port.id) : []) as T;
    return this.#box.resolve<T>(port.id);
  }

  give<N extends Needs>(needs: N): Given<N> {
    return Object.fromEntries(Object.entries(needs).map(([key, port]) => [key, this.get(port)])) as Given<N>;
  }

  async dispose(): Promise<void> {
    await this.#box.dispose();
  }
}
