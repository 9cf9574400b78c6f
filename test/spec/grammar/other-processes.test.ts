import { ports, type Scope } from "@portico/core";
import { registerProcess, type SharedPorts, sharedPorts } from "@portico/core/kit";
import { describe, expect, it, vi } from "vitest";

const bus: ports.Bus = { publish() {}, subscribe: () => ({ active: Promise.resolve(true), close() {} }) };

describe("the processes of an instance that shares an engine", () => {
  const start = (locate: ports.Presence["locate"]) => {
    const closing: (() => unknown)[] = [];
    const presence = { process: "p", hold: vi.fn<ports.Presence["hold"]>(), release: vi.fn<ports.Presence["release"]>(), locate };
    const shared: SharedPorts = { isShared: true, bus, presence };
    const scope = { onClose: (run: () => unknown) => void closing.push(run) } as unknown as Scope;
    const isAlive = registerProcess(shared, { area: "area", id: "own" }, scope);
    return { presence, isAlive, close: () => closing.forEach((run) => run()) };
  };

  it("are registered while they live", () => {
    const { presence, close } = start(async () => undefined);
    expect(presence.hold).toHaveBeenCalledWith("area/own", {});
    close();
    expect(presence.release).toHaveBeenCalledWith("area/own");
  });

  it("know themselves, and which others live", async () => {
    const { isAlive } = start(async (key) => (key === "area/other" ? { process: "q" } : undefined) as never);
    expect(await Promise.all(["own", "other", "gone"].map(isAlive))).toEqual([true, true, false]);
  });

  it("take no process for dead while nobody can be asked, because its work would then be done twice", async () => {
    const { isAlive } = start(async () => {
      throw new ports.PresenceUnavailable("away");
    });
    expect(await isAlive("other")).toBeUndefined();
  });

  it("do not start without a bus and presence", () => {
    const engine = { isShared: true } as ports.Engine;
    expect(() => sharedPorts({ engine, bus: undefined, presence: undefined })).toThrow("bus and presence");
  });
});
