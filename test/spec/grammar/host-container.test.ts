import "reflect-metadata";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { manualClock } from "@portico/adapters/clock/manual";
import { createApp, defineAdapter, defineManyPort, definePort, portToken, ports } from "@portico/core";
import { container as global, type DependencyContainer, inject, injectable } from "tsyringe";
import { beforeEach, describe, expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

const house = definePort<{ readonly rooms: number }>("test/house");
const guests = defineManyPort<string>("test/guests");

const building = defineAdapter({ name: "building", port: house, needs: {}, open: () => ({ rooms: 3 }) });
const guest = defineAdapter({ name: "guest", port: guests, needs: {}, open: (_given, name: string) => name });
const preset = (name: string) => ({ name, adapters: [building(), guest("ada"), guest("bob"), manualClock({})] });

/** A class of the host's. Decorators are functions: Node runs them so without a compiler. */
class Porter {
  readonly house: { readonly rooms: number };
  readonly guests: readonly string[];

  constructor(given: { readonly rooms: number }, all: readonly string[]) {
    this.house = given;
    this.guests = all;
  }
}
inject(portToken(house))(Porter, undefined, 0);
inject(portToken(guests))(Porter, undefined, 1);
injectable()(Porter);

describe("an app in a host's container", () => {
  let container: DependencyContainer;
  beforeEach(() => {
    container = global.createChildContainer();
  });

  it("has its ports injected into the host's classes, many-ports as lists in their order", async () => {
    await using app = await createApp(preset("one"), { container });
    const porter = container.resolve(Porter);
    expect(porter.house).toBe(app.port(house));
    expect(porter.guests).toEqual(["ada", "bob"]);
  });

  it("has ports that it fills itself there, too, under tokens with the port's type", async () => {
    await using app = await createApp(preset("one"), { container });
    const clock: ports.Clock = container.resolve(portToken(ports.clock));
    expect(clock).toBe(app.port(ports.clock));
    // @ts-expect-error: the token carries the type.
    const wrong: ports.Ids = container.resolve(portToken(ports.clock));
    expect([wrong, container.resolve(portToken(ports.ids))]).toEqual([clock, app.port(ports.ids)]);
  });

  it("resolves in the containers below it, and in no other", async () => {
    await using _app = await createApp(preset("one"), { container });
    expect(container.createChildContainer().resolve(portToken(house)).rooms).toBe(3);
    expect(() => global.resolve(portToken(house))).toThrow('Port "test/house" is filled by no app of this container');
  });

  it("leaves nothing where the start fails, and says what is missing", async () => {
    const failing = { ...preset("failing"), adapters: [defineAdapter({ ...building().spec, open: () => fail() })()] };
    await expect(createApp(failing, { container })).rejects.toThrow("no house");
    expect(() => container.resolve(Porter)).toThrow('Port "test/house" is filled by no app of this container');
  });

  it("is refused if the container already has another app, which continues; two apps in separate containers work", async () => {
    await using _one = await createApp(preset("one"), { container });
    await expect(createApp(preset("two"), { container })).rejects.toThrow(
      'App "one" has its ports in this container: give "two" one of its own (container.createChildContainer())',
    );
    expect(container.resolve(portToken(house)).rooms).toBe(3);
    const [left, right] = [global.createChildContainer(), global.createChildContainer()];
    await using a = await createApp(preset("a"), { container: left });
    await using b = await createApp(preset("b"), { container: right });
    expect(left.resolve(portToken(house))).toBe(a.port(house));
    expect(right.resolve(portToken(house))).toBe(b.port(house));
  });

  it("resolves no more once it is closed, and another app may take its place", async () => {
    const first = await createApp(preset("first"), { container });
    await first.close();
    expect(() => container.resolve(portToken(house))).toThrow('App "first" is closed, and its port "test/house" with it');
    await using second = await createApp(preset("second"), { container });
    expect(container.resolve(portToken(house))).toBe(second.port(house));
  });

  it("is the host's own library: an app does not load it", async () => {
    const program = `
      await import("@portico/core");
      const { createRequire } = await import("node:module");
      console.log(typeof Reflect.getMetadata, Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes("tsyringe")).length);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
    expect(stdout.trim()).toBe("undefined 0");
  });

  it("an app and its host's container are disposed of independently", async () => {
    class Own {
      isDisposed = false;
      dispose(): void {
        this.isDisposed = true;
      }
    }
    injectable()(Own);
    const own = container.resolve(Own);
    const app = await createApp(preset("one"), { container });
    await app.close();
    expect(own.isDisposed).toBe(false);
    await using other = await createApp(preset("other"), { container });
    await container.dispose();
    expect([own.isDisposed, other.port(house).rooms]).toEqual([true, 3]);
  });
});

function fail(): never {
  throw new Error("no house");
}
