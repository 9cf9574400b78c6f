import Activity from "@lucide/svelte/icons/activity";
import Bot from "@lucide/svelte/icons/bot";
import CalendarClock from "@lucide/svelte/icons/calendar-clock";
import ChartLine from "@lucide/svelte/icons/chart-line";
import FlaskConical from "@lucide/svelte/icons/flask-conical";
import KeyRound from "@lucide/svelte/icons/key-round";
import LayoutDashboard from "@lucide/svelte/icons/layout-dashboard";
import ScrollText from "@lucide/svelte/icons/scroll-text";
import ShieldQuestionMark from "@lucide/svelte/icons/shield-question-mark";
import Webhook from "@lucide/svelte/icons/webhook";
import Workflow from "@lucide/svelte/icons/workflow";
import type { Component } from "svelte";

export interface Page {
  /** First segment of its address. */
  readonly id: string;
  readonly title: string;
  readonly icon: Component;
  /** Loaded when it is first shown. The page reads the further segments of the address from `currentRoute()`. */
  readonly load: () => Promise<{ readonly default: Component }>;
}

/** All pages, in the order of the navigation. */
export const pages: readonly Page[] = [
  { id: "", title: "Overview", icon: LayoutDashboard, load: () => import("../pages/Overview.svelte") },
  { id: "providers", title: "Providers", icon: KeyRound, load: () => import("../pages/Providers.svelte") },
  { id: "playground", title: "Playground", icon: FlaskConical, load: () => import("../pages/Playground.svelte") },
  { id: "agents", title: "Agents", icon: Bot, load: () => import("../pages/Agents.svelte") },
  { id: "webhooks", title: "Webhooks", icon: Webhook, load: () => import("../pages/Webhooks.svelte") },
  { id: "schedules", title: "Schedules", icon: CalendarClock, load: () => import("../pages/Schedules.svelte") },
  { id: "workflows", title: "Workflows", icon: Workflow, load: () => import("../pages/Workflows.svelte") },
  { id: "runs", title: "Runs", icon: Activity, load: () => import("../pages/Runs.svelte") },
  { id: "measurements", title: "Measurements", icon: ChartLine, load: () => import("../pages/Measurements.svelte") },
  { id: "log", title: "Log", icon: ScrollText, load: () => import("../pages/Log.svelte") },
  { id: "approvals", title: "Approvals", icon: ShieldQuestionMark, load: () => import("../pages/Approvals.svelte") },
];
