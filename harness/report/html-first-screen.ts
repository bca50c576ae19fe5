/** The first screen as markup; the words come from `first-screen.ts`. */
import type { FirstScreen, LossLine } from './first-screen.ts';
import { html, type Markup } from './markup.ts';
import type { RunReport } from './model.ts';

/** Limits named on the first screen; all stand further down. */
const limitsShown = 4;

function loss(line: LossLine): Markup {
  const link =
    line.findingId === null
      ? html`<a href="#findings">all findings</a>`
      : html`<a class="open" href="#/finding/${encodeURIComponent(line.findingId)}">open ${line.findingId} →</a>`;
  return html`<li>
    <p class="what">${line.sentence}</p>
    <p class="under">${line.under}</p>
    ${line.whereNow === '' ? null : html`<p class="now"><span class="tag">value now</span> ${line.whereNow}</p>`}
    <p class="go">${link}</p>
  </li>`;
}

function lossBlock(screen: FirstScreen): Markup {
  if (screen.losses.length === 0) {
    return html`<div class="block">
      <h2>Lost</h2>
      <p>${screen.nothingFound ?? 'Nothing was found lost, stale or otherwise wrong.'}</p>
    </div>`;
  }
  const more = screen.moreLosses === null ? null : html`<p><a href="#findings">${screen.moreLosses}</a></p>`;
  return html`<div class="block">
    <h2>What was found, by cause</h2>
    <ol class="losses">
      ${screen.losses.map(loss)}
    </ol>
    ${more}
  </div>`;
}

function lines(title: string, items: readonly string[], kind: string): Markup | null {
  if (items.length === 0) return null;
  return html`<div class="block ${kind}">
    <h2>${title}</h2>
    <ul>
      ${items.map((item) => html`<li>${item}</li>`)}
    </ul>
  </div>`;
}

/** Left: what was found (or is missing), else how strong; then replay. Right: the numbers, and what the left has no room for. */
function columns(screen: FirstScreen, report: RunReport): Markup {
  const missingTitle = report.verdict.kind === 'violated' ? 'Also wrong or missing' : 'What is missing';
  const missing = lines(missingTitle, screen.missing, 'missing');
  const strength = lines('How strong', screen.strength, 'strength');
  const found = screen.losses.length > 0;
  const replay = html`<div class="block">
    <h2>Replay</h2>
    <div class="replay">
      <code id="replay">${screen.replay}</code><button type="button" data-copy="replay">copy</button>
    </div>
    <p class="note">${screen.replayNote}</p>
  </div>`;
  const limits = html`<div class="block limits">
    <h2><a href="#limits">What this run did not test</a></h2>
    <ul>
      ${report.limits.slice(0, limitsShown).map((limit) => html`<li>${limit}</li>`)}
    </ul>
  </div>`;
  const facts = html`<dl class="facts">
    ${screen.facts.map(
      (fact) =>
        html`<div>
          <dt>${fact.label}</dt>
          <dd><b>${fact.value}</b> <span>${fact.note}</span></dd>
        </div>`,
    )}
  </dl>`;
  return html`<div class="columns">
    <div>${found ? null : missing}${lossBlock(screen)}${found ? null : strength}${replay}</div>
    <div>${facts}${found ? strength : null}${found ? missing : null}${limits}</div>
  </div>`;
}

/** Verdict, headline, losses, strength, what is missing, facts, replay. */
export function renderFirstScreen(screen: FirstScreen, report: RunReport): Markup {
  return html`<section id="first" class="first tone-${screen.tone}" tabindex="-1" aria-labelledby="verdict">
    <p class="verdict" id="verdict">
      <span class="sign" aria-hidden="true">${screen.sign}</span><span class="word">${screen.word}</span
      ><span class="exit">${screen.first}</span>
    </p>
    <h1>${screen.headline}</h1>
    <p class="identity">${screen.identity}</p>
    ${columns(screen, report)}
  </section>`;
}
