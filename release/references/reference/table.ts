/** A Markdown table. Empty cells are allowed; a `|` in a cell is escaped. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(heads), `|${" --- |".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll(/(?<!\\)\|/g, "\\|").replaceAll(/\s*\n\s*/g, " ");
}

/** A name in the code: `text`. */
export function code(text: string): string {
  return `\`${text}\``;
}

/** 65536 as `64 KiB`. */
export function bytes(count: number): string {
  const units = [
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ] as const;
  const [unit, size] = units.find(([, each]) => count >= each && count % each === 0) ?? ["bytes", 1];
  return `${(count / size).toLocaleString("en")} ${unit}`;
}
