import { currentRoute, replaceRoute, routeTo } from "../../../shell/route.svelte.ts";
import { ROWS } from "../read-page.ts";

interface Given<Row> {
  /** All rows. */
  readonly rows: () => readonly Row[];
  /** The texts of a row in which the words of the filter are looked for. */
  readonly texts: (row: Row) => readonly (string | undefined)[];
  /** Begins the names of its parameters in the address, where a place has several lists. */
  readonly prefix?: string;
}

/** Below this number of rows, a filter is of no use. */
const FEW = 10;

/**
 * A list that one call of the service answers whole. Its filter and page are in the address: `#/agents?q=report&page=2`. The document has
 * one page of it.
 */
export class WholeList<Row> {
  readonly #given: Given<Row>;
  /** The words of the filter. Empty without a filter. */
  readonly words: string = $derived.by(() => currentRoute().query.get(this.#name("q")) ?? "");
  readonly count: number = $derived.by(() => this.#given.rows().length);
  /** The rows with all words of the filter. */
  readonly matching: readonly Row[] = $derived.by(() => {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    const all = this.#given.rows();
    if (words.length === 0) return all;
    return all.filter((row) => {
      const text = this.#given.texts(row).join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    });
  });
  readonly pages: number = $derived(Math.max(1, Math.ceil(this.matching.length / ROWS)));
  /** From 1. A page beyond the last one is the last one. */
  readonly page: number = $derived.by(() => {
    const asked = Number(currentRoute().query.get(this.#name("page")) ?? 1);
    return Number.isInteger(asked) ? Math.min(Math.max(asked, 1), this.pages) : 1;
  });
  /** The number of rows before this page. */
  readonly offset: number = $derived((this.page - 1) * ROWS);
  readonly shown: readonly Row[] = $derived(this.matching.slice(this.offset, this.offset + ROWS));
  readonly hasFilter: boolean = $derived(this.count > FEW || this.words !== "");

  constructor(given: Given<Row>) {
    this.#given = given;
  }

  /** Shows the first page of the rows with these words. */
  find(words: string): void {
    replaceRoute(this.#address({ q: words, page: "" }));
  }

  /** The address of a page. */
  to(page: number): string {
    return this.#address({ page: page === 1 ? "" : String(page) });
  }

  #name(parameter: string): string {
    return `${this.#given.prefix ?? ""}${parameter}`;
  }

  /** The address of the same place, whose other parameters stay. */
  #address(changed: Readonly<Record<string, string>>): string {
    const { page, path, query } = currentRoute();
    for (const [parameter, value] of Object.entries(changed)) {
      if (value === "") query.delete(this.#name(parameter));
      else query.set(this.#name(parameter), value);
    }
    const text = query.toString();
    return routeTo(page, ...path) + (text === "" ? "" : `?${text}`);
  }
}
