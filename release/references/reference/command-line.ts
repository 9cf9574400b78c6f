import type { ArgDef, ArgsDef, CommandDef, CommandMeta, Resolvable } from "citty";
import { portico } from "../../../presets/cli/src/main.ts";
import { settingsFlags } from "../../../presets/cli/src/settings-flags.ts";
import { code, table } from "./table.ts";

/** Every command with its words and options, from the definitions of the command line. */
export async function commandReference(): Promise<string> {
  const shared = Object.entries(settingsFlags).map(([name, { description }]) => [code(`--${name}`), description]);
  const children = Object.values((await resolved(portico.subCommands)) ?? {});
  const parts = await Promise.all(children.map(async (child) => partsOf((await resolved(child)) as CommandDef<any>, "portico")));
  return [
    "`portico COMMAND --help` prints the same. Options in brackets may be left out. Almost every command also takes:",
    table(["Option", "Meaning"], shared),
    ...parts.flat(),
  ].join("\n\n");
}

async function partsOf(command: CommandDef<any>, parent: string): Promise<string[]> {
  const { name = "", description = "" } = ((await resolved(command.meta)) ?? {}) as CommandMeta;
  const words = `${parent} ${name}`;
  const children = await resolved(command.subCommands);
  if (children) {
    const found = await Promise.all(
      Object.values(children).map(async (child) => partsOf((await resolved(child)) as CommandDef<any>, words)),
    );
    return [`## ${words}`, `${description}.`, ...found.flat()];
  }
  const args = Object.entries(((await resolved(command.args)) ?? {}) as ArgsDef);
  const own = args.filter(([key]) => !Object.hasOwn(settingsFlags, key));
  const usage = [words, ...own.map(([key, definition]) => usageOf(key, definition))].join(" ");
  const rows = own.map(([key, definition]) => [
    code(definition.type === "positional" ? wordOf(key) : `--${key}`),
    definition.description ?? "",
  ]);
  return [
    `${parent === "portico" ? "##" : "###"} ${words}`,
    `${description}.`,
    `\`\`\`usage\n${usage}\n\`\`\``,
    ...(rows.length === 0 ? [] : [table(["Option", "Meaning"], rows)]),
  ];
}

function usageOf(key: string, definition: ArgDef): string {
  if (definition.type === "positional") {
    const many = "valueHint" in definition && definition.valueHint?.endsWith("…") ? "…" : "";
    return definition.required === false ? `[${wordOf(key)}${many}]` : `${wordOf(key)}${many}`;
  }
  const hint = "valueHint" in definition ? definition.valueHint : undefined;
  const option = definition.type === "boolean" ? `--${key}` : `--${key} ${(hint ?? "text").toUpperCase().replaceAll(" ", "-")}`;
  return definition.required ? option : `[${option}]`;
}

function wordOf(key: string): string {
  return key.replaceAll(/([A-Z])/g, "_$1").toUpperCase();
}

async function resolved<T>(value: Resolvable<T> | undefined): Promise<T | undefined> {
  return typeof value === "function" ? (value as () => T | Promise<T>)() : value;
}
