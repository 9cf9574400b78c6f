import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Protocol } from "./callers.ts";
import { toPage } from "../spec/docs/pages.ts";
import { root } from "../rooms/repository.ts";

export const GUIDE = "docs/guides/coding-tools.md";

/** A tool of the guide that is tried: its row of the table, and its commands. */
export interface CodingTool {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  /** The protocol of the commands that the guide shows. */
  readonly speaks: Protocol;
  /** The commands that a reader of the guide types. */
  readonly commands: string;
}

/** The tools whose commands the guide shows, in its order. */
export function readCodingTools(): readonly CodingTool[] {
  const text = readFileSync(join(root, GUIDE), "utf8");
  const rows = [...text.matchAll(/^\| \[(.+?)\]\(#.+?\) \| `(\S+)` \| (\S+) \| (Messages|Chat)/gm)];
  const sections = new Map(text.split(/^### /m).map((section) => [section.split("\n")[0], section]));
  return rows.map(([, name = "", packageName = "", version = "", first]) => {
    const block = toPage(GUIDE, sections.get(name) ?? "").blocks.find(({ language }) => language === "sh");
    if (!block) throw new Error(`${GUIDE} shows no commands for ${name}`);
    return {
      name,
      package: packageName,
      version,
      speaks: first === "Chat" ? "chat-completions" : "messages",
      commands: block.text,
    };
  });
}

const run = promisify(execFile);
const INSTALL_MS = 600_000;

/**
 * Installs the version that the guide names, outside the workspace, and keeps it for the next run. Gives the folder of its commands, or
 * undefined where npm cannot get it.
 */
export async function installCodingTool(tool: CodingTool): Promise<string | undefined> {
  const folder = join(root, "node_modules/.cache/coding-tools", `${tool.package.replaceAll(/\W+/g, "-")}-${tool.version}`);
  const commands = join(folder, "node_modules/.bin");
  const done = join(folder, "installed");
  if (existsSync(done)) return commands;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  try {
    const options = ["--no-audit", "--no-fund", "--loglevel=error"];
    await run("npm", ["install", ...options, `${tool.package}@${tool.version}`], { cwd: folder, timeout: INSTALL_MS });
  } catch {
    return undefined;
  }
  writeFileSync(done, "");
  return commands;
}
