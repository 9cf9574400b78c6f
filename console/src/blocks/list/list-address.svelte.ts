import { currentRoute, replaceRoute } from "../../shell/route.svelte.ts";
import type { Column } from "../Table.svelte";
import type { Place } from "./read-page.ts";

/** A filter of a list. */
export interface Filter {
  /** In the address. */
  readonly name: string;
  /** On its chip. */
  readonly title: string;
  /** It may have several values. */
  readonly isList?: true;
  /** A value in words. Undefined for an unknown value, which counts as absent. Default: the value. */
  readonly describe?: (value: string) => string | undefined;
}

/** A column that the user may choose. */
export interface ListColumn extends Column {
  /** `always`: it cannot be hidden. `unless`: it is shown unless the user hides it. `if`: only if the user chooses it. */
  readonly isShown: "always" | "unless" | "if";
}

/** A value of a filter, as it is shown. */
export interface Chip {
  readonly text: string;
  /** The address without it. */
  readonly without: string;
}

interface Given {
  /** The address of the list without anything chosen: `#/runs`. */
  readonly path: string;
  /** Parameters that always belong to it: `of=workflows`. */
  readonly fixed?: Readonly<Record<string, string>>;
  readonly filters: readonly Filter[];
  readonly columns: readonly ListColumn[];
  /** The name under which the browser remembers the columns. */
  readonly keptAs: string;
}

/**
 * Filters, columns and page of a list. They are in the address, so that it can be bookmarked and shared, and the browser's back and forward work:
 * `#/runs?status=failed&columns=status,cost&after=…`. Columns are also remembered in this browser, for addresses without them.
 */
export class ListAddress {
  readonly #given: () => Given;
  /** Filters and place as text, which is equal until one of them changes. */
  readonly asked: string = $derived.by(() => this.#write(currentRoute().query, ["after", "before"]));
  readonly #query = $derived(new URLSearchParams(this.asked));
  /** The filters alone, likewise. */
  readonly filters: string = $derived.by(() => this.#write(currentRoute().query, []));
  readonly #columnsText: string | undefined = $derived(currentRoute().query.get("columns") ?? undefined);
  #remembered = $state<string>();
  /** Where the page begins. */
  readonly place: Place = $derived.by(() => {
    const [after, before] = [this.#query.get("after"), this.#query.get("before")];
    return after !== null ? { after } : before !== null ? { before } : {};
  });
  /** The columns that are shown, in their order. */
  readonly columns: readonly ListColumn[] = $derived.by(() => {
    const { columns } = this.#given();
    const chosen = this.#columnsText ?? this.#remembered;
    const ids = chosen === undefined ? undefined : new Set(chosen.split(","));
    return columns.filter(({ id, isShown }) => isShown === "always" || (ids ? ids.has(id) : isShown === "unless"));
  });
  /** What is filtered, for people. */
  readonly chips: readonly Chip[] = $derived.by(() =>
    this.#given().filters.flatMap(({ name, title, describe = (value: string) => value }) =>
      this.values(name).map((value) => ({
        text: `${title}: ${describe(value) ?? value}`,
        without: this.with({ [name]: this.values(name).filter((each) => each !== value) }),
      })),
    ),
  );

  constructor(given: () => Given) {
    this.#given = given;
    this.#remembered = localStorage.getItem(this.#key) ?? undefined;
  }

  /** The value of a filter; empty without one. */
  value(name: string): string {
    return this.#query.get(name) ?? "";
  }

  /** All values of a filter. */
  values(name: string): readonly string[] {
    return this.#query.getAll(name);
  }

  /** Shows the newest page with these values: `""` and `[]` remove a filter. */
  set(changed: Readonly<Record<string, string | readonly string[]>>): void {
    location.hash = this.with(changed);
  }

  /** The address of the newest page with these values of filters. */
  with(changed: Readonly<Record<string, string | readonly string[]>>): string {
    const query = new URLSearchParams(this.filters);
    for (const [name, value] of Object.entries(changed)) {
      query.delete(name);
      for (const each of typeof value === "string" ? [value] : value) if (each !== "") query.append(name, each);
    }
    return this.#address(new URLSearchParams(this.#write(query, [])));
  }

  /** All columns, also those that are hidden. */
  get allColumns(): readonly ListColumn[] {
    return this.#given().columns;
  }

  /** The address of this list without filters. */
  get clear(): string {
    return this.#address(new URLSearchParams());
  }

  /** The address of another page of this list. */
  to(place: Place): string {
    return this.#address(new URLSearchParams([...new URLSearchParams(this.filters), ...Object.entries(place)]));
  }

  /** The address for other people: with the columns, also if only this browser remembers them. */
  get link(): string {
    return new URL(this.#address(this.#query, this.#idsOf(this.columns)), location.href).href;
  }

  /** Shows or hides a column, and remembers that. */
  toggle(id: string): void {
    const all = this.#given().columns;
    const shown = new Set(this.columns.map((column) => column.id));
    if (!shown.delete(id)) shown.add(id);
    const ids = this.#idsOf(all.filter((column) => shown.has(column.id)));
    const isUsual = ids === this.#idsOf(all.filter(({ isShown }) => isShown !== "if"));
    this.#remembered = isUsual ? undefined : ids;
    if (isUsual) localStorage.removeItem(this.#key);
    else localStorage.setItem(this.#key, ids);
    replaceRoute(this.#address(this.#query, isUsual ? undefined : ids));
  }

  get #key(): string {
    return `portico.console.columns.${this.#given().keptAs}`;
  }

  #idsOf(columns: readonly ListColumn[]): string {
    return columns
      .filter(({ isShown }) => isShown !== "always")
      .map(({ id }) => id)
      .join(",");
  }

  /** The known parameters of a query, in the order of the filters. */
  #write(query: URLSearchParams, more: readonly string[]): string {
    const found: [string, string][] = [];
    for (const { name, isList, describe } of this.#given().filters) {
      const values = query
        .getAll(name)
        .map((value) => value.trim())
        .filter((value) => value !== "" && (!describe || describe(value) !== undefined));
      for (const value of isList ? new Set(values) : values.slice(0, 1)) found.push([name, value]);
    }
    for (const name of more) {
      const value = query.get(name);
      if (value) found.push([name, value]);
    }
    return new URLSearchParams(found).toString();
  }

  #address(query: URLSearchParams, columns = this.#columnsText): string {
    const { path, fixed = {} } = this.#given();
    // Commas are readable in an address.
    const kept = columns === undefined ? "" : `columns=${encodeURIComponent(columns).replaceAll("%2C", ",")}`;
    const all = [new URLSearchParams(fixed).toString(), query.toString(), kept].filter((part) => part !== "").join("&");
    return all === "" ? path : `${path}?${all}`;
  }
}
