window.addEventListener('load', () => {
  const faults = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const inner = frame.contentDocument, where = frame.title;
    inner.querySelectorAll('details').forEach(it => it.open = true);
    const width = inner.documentElement.clientWidth;
    if (inner.documentElement.scrollWidth > width) faults.push(where + ': the page is wider than the window');
    for (const it of inner.body.querySelectorAll('*')) {
      if (it.closest('svg')) continue;
      const name = where + ': ' + it.tagName + ' ' + it.textContent.trim().slice(0, 40);
      // Bars are no text, and the head of a table on a narrow page is for listeners alone.
      const head = it.closest('thead');
      if (it.closest('.track') || (head && getComputedStyle(head).position === 'absolute')) continue;
      if (it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0) faults.push(name + ' overflows');
      const box = it.getBoundingClientRect();
      if (box.right > width + 1) faults.push(name + ' is cut off');
      if (/^(TD|TH|DT|DD)$/.test(it.tagName) && it.textContent.trim().length > 3 && box.width < 40) faults.push(name + ' is too narrow');
    }
    for (const text of inner.querySelectorAll('svg text')) {
      const box = text.getBoundingClientRect(), svg = text.ownerSVGElement.getBoundingClientRect();
      if (box.left < svg.left - 1 || box.right > svg.right + 1) faults.push(where + ': text of a chart is cut off: ' + text.textContent);
    }
    for (const link of inner.querySelectorAll('a[href^="#"]')) {
      if (!inner.getElementById(link.getAttribute('href').slice(1))) faults.push(where + ': a link leads nowhere: ' + link.textContent);
    }
  }
  document.body.innerHTML = '<pre id="result"></pre>';
  document.getElementById('result').textContent = 'checked\n' + faults.join('\n');
});
