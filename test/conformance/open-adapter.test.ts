import { type Adapter, defineAdapter, defineManyPort, definePort } from "@portico/core";
import { describe, expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";

const name = definePort<string>("name");
const parts = defineManyPort<string>("parts");
const whole = definePort<string>("whole");

describe("openAdapter", () => {
  const undone: string[] = [];
  const filling = (port: typeof name | typeof parts, text: string): Adapter =>
    defineAdapter({
      name: `test/${text}`,
      port: port as typeof name,
      needs: {},
      open(_given, _options, scope) {
        scope.onClose(() => undone.push(text));
        return text;
      },
    })();
  const made = defineAdapter({
    name: "whole/made",
    port: whole,
    needs: { name, parts },
    open({ name, parts }, options: { readonly fail?: boolean }, scope) {
      scope.onClose(() => undone.push("whole"));
      if (options.fail) throw new Error("cannot open");
      return `${name}: ${parts.join()}`;
    },
  });

  it("opens what the adapter needs, all of it where a port has many, and closes last in first out", async () => {
    undone.length = 0;
    const others = [filling(parts, "a"), filling(name, "n"), filling(parts, "b")];
    const { port, close } = await openAdapter(made({}), others);
    expect(port).toBe("n: a,b");
    await close();
    await close();
    expect(undone).toEqual(["whole", "b", "a", "n"]);
  });

  it("names a port that has no adapter, or two", async () => {
    await expect(openAdapter(made({}))).rejects.toThrow("whole/made needs one adapter for the port name; 0 were given");
    const two = [filling(name, "n"), filling(name, "m")];
    await expect(openAdapter(made({}), two)).rejects.toThrow("2 were given");
  });

  it("undoes everything when opening fails", async () => {
    undone.length = 0;
    await expect(openAdapter(made({ fail: true }), [filling(name, "n")])).rejects.toThrow("cannot open");
    expect(undone).toEqual(["whole", "n"]);
  });
});
