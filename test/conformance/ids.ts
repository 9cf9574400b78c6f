import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** Options of `idsConformance`. */
export interface IdsConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Every opening gives the same IDs in the same order. Otherwise IDs must be unpredictable. */
  readonly foretold?: boolean;
}

const MANY = 20_000;

/** The law of the ids port, as vitest tests. `makeAdapter` is called once per test. */
export function idsConformance(
  name: string,
  makeAdapter: () => Adapter<typeof ports.ids> | Promise<Adapter<typeof ports.ids>>,
  { others = [], foretold = false }: IdsConformanceOptions = {},
): void {
  describeSuite(`ids port: ${name}`, () => {
    let opened: OpenAdapter<ports.Ids>;
    let ids: ports.Ids;
    beforeEach(async () => {
      opened = await openAdapter(await makeAdapter(), others);
      ids = opened.port;
    });
    afterEach(() => opened.close());

    const many = <T>(make: () => T): T[] => Array.from({ length: MANY }, make);

    it("makes lowercase UUIDs of version 4, each once", () => {
      const made = many(() => ids.uuid());
      expect(made.filter((uuid) => !/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuid))).toEqual(
        [],
      );
      expect(new Set(made).size).toBe(MANY);
    });

    it("makes the prefix and at least 96 bits of letters and digits, each once", () => {
      const made = many(() => ids.id("req_"));
      // 17 of 62 characters are the first to hold 96 bits.
      expect(made.filter((id) => !/^req_[A-Za-z0-9]{17,}$/.test(id))).toEqual([]);
      expect(new Set(made).size).toBe(MANY);
    });

    it("puts any prefix in front as it is", () => {
      for (const prefix of ["", "chatcmpl-", "a b/", "é"]) {
        const id = ids.id(prefix);
        expect(id.slice(0, prefix.length)).toBe(prefix);
        expect(id.slice(prefix.length)).toMatch(/^[A-Za-z0-9]{17,}$/);
      }
    });

    it("gives another opening the same names only where they are foretold", async () => {
      const other = await openAdapter(await makeAdapter(), others);
      const names = (from: ports.Ids): string[] => [from.uuid(), from.id("a_"), from.id("b_"), from.uuid()];
      const [mine, theirs] = [names(ids), names(other.port)];
      await other.close();
      if (foretold) expect(theirs).toEqual(mine);
      else expect(theirs.filter((one) => mine.includes(one))).toEqual([]);
    });

    if (foretold) return;
    it("uses every letter and digit at every place, and all about as often", () => {
      const made = many(() => ids.id(""));
      const length = Math.min(...made.map((id) => id.length));
      const counts = new Map<string, number>();
      for (const letter of made.join("")) counts.set(letter, (counts.get(letter) ?? 0) + 1);
      // Ten standard deviations do not happen by chance; bytes taken modulo 62 would miss by fifteen.
      const average = made.join("").length / 62;
      for (const count of counts.values()) expect(Math.abs(count - average)).toBeLessThan(10 * Math.sqrt(average));
      for (let place = 0; place < length; place++) expect(new Set(made.map((id) => id.charAt(place))).size).toBe(62);
    });
  });
}
