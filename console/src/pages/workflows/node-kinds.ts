import Bot from "~icons/lucide/bot";
import Box from "~icons/lucide/box";
import Code from "~icons/lucide/code";
import Globe from "~icons/lucide/globe";
import Layers from "~icons/lucide/layers";
import OctagonX from "~icons/lucide/octagon-x";
import Repeat from "~icons/lucide/repeat";
import Shuffle from "~icons/lucide/shuffle";
import Sparkles from "~icons/lucide/sparkles";
import Split from "~icons/lucide/split";
import Timer from "~icons/lucide/timer";
import UserCheck from "~icons/lucide/user-check";
import Webhook from "~icons/lucide/webhook";
import Workflow from "~icons/lucide/workflow";
import Wrench from "~icons/lucide/wrench";
import type { Component } from "svelte";

const ICONS = new Map<string, Component>([
  ["agent", Bot],
  ["branch", Split],
  ["callback", Webhook],
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
