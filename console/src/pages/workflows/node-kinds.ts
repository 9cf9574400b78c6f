import Bot from "@lucide/svelte/icons/bot";
import Box from "@lucide/svelte/icons/box";
import Code from "@lucide/svelte/icons/code";
import Globe from "@lucide/svelte/icons/globe";
import Layers from "@lucide/svelte/icons/layers";
import OctagonX from "@lucide/svelte/icons/octagon-x";
import Repeat from "@lucide/svelte/icons/repeat";
import Shuffle from "@lucide/svelte/icons/shuffle";
import Sparkles from "@lucide/svelte/icons/sparkles";
import Split from "@lucide/svelte/icons/split";
import Timer from "@lucide/svelte/icons/timer";
import UserCheck from "@lucide/svelte/icons/user-check";
import Workflow from "@lucide/svelte/icons/workflow";
import Wrench from "@lucide/svelte/icons/wrench";
import type { Component } from "svelte";

const ICONS = new Map<string, Component>([
  ["agent", Bot],
  ["branch", Split],
  ["code", Code],
  ["fail", OctagonX],
  ["http", Globe],
  ["human_gate", UserCheck],
  ["loop", Repeat],
  ["map", Layers],
  ["model", Sparkles],
  ["tool", Wrench],
  ["transform", Shuffle],
  ["wait", Timer],
  ["workflow", Workflow],
]);

/** The icon of a kind of node. Kinds of plugins share one icon. */
export function nodeIcon(type: string): Component {
  return ICONS.get(type) ?? Box;
}

/** `human gate`. */
export function nodeKind(type: string): string {
  return type.replaceAll("_", " ");
}
