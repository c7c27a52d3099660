//! Tables for every reader of the Arrow C stream interface.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use fanin_report::{Records, RowBatches, TableName};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyFloat, PyInt, PyList, PyString};

/// A table of a result, or one made of columns; Arrow batches are made when a reader asks for them.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct RecordTable {
    schema: SchemaRef,
    cells: Cells,
}

enum Cells {
    Rows(Arc<Records>, TableName),
    Batch(RecordBatch),
}

/// Rows that a notebook shows.
const SHOWN_ROWS: usize = 5;

/// Writes a value for a notebook; nothing for an absent value.
fn shown(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        _ => array.as_primitive::<Int64Type>().value(row).to_string(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl RecordTable {
    /// Makes a table of the records.
    pub(crate) fn of_rows(records: Arc<Records>, table: TableName) -> Self {
        Self { schema: table.schema(), cells: Cells::Rows(records, table) }
    }

    fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        match &self.cells {
            Cells::Rows(records, table) => Box::new(RowBatches::new(Arc::clone(records), *table)),
            Cells::Batch(batch) => {
                let batches = [Ok::<_, ArrowError>(batch.clone())];
                Box::new(RecordBatchIterator::new(batches, self.schema.clone()))
            }
        }
    }
}

#[pymethods]
impl RecordTable {
    /// The table as an Arrow stream, for polars, pyarrow, pandas, DuckDB and others; the wish for another schema is not
    /// granted, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(self.reader()), c"arrow_array_stream")
    }

    /// The names, types and units of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| wrong(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        match &self.cells {
            Cells::Rows(records, table) => table.rows(records),
            Cells::Batch(batch) => batch.num_rows(),
        }
    }

    /// The number of rows and the columns, on one line.
    fn __repr__(&self) -> String {
        format!("<fanin.RecordTable, {}: {}>", rows_in_words(self.__len__()), self.columns().join(", "))
    }

    /// The first rows as HTML, for a notebook.
    fn _repr_html_(&self) -> PyResult<String> {
        let head = self.schema.fields().iter().map(|field| {
            let unit = field.metadata().get("unit").map_or("", String::as_str);
            format!("<th>{}<br/><small>{}</small></th>", escaped(field.name()), escaped(unit))
        });
        let mut html = format!("<table><thead><tr>{}</tr></thead><tbody>", head.collect::<String>());
        let first = self.reader().next().transpose().map_err(|error| wrong(&error))?;
        for row in 0..first.as_ref().map_or(0, |batch| batch.num_rows().min(SHOWN_ROWS)) {
            let cells = first.iter().flat_map(RecordBatch::columns);
            let cells = cells.map(|array| format!("<td>{}</td>", escaped(&shown(array, row))));
            html += &format!("<tr>{}</tr>", cells.collect::<String>());
        }
        let rows = self.__len__();
        let more =
            if rows > SHOWN_ROWS { format!(", the first {SHOWN_ROWS} of them") } else { String::new() };
        Ok(html + &format!("</tbody></table><small>{}{more}</small>", rows_in_words(rows)))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The unit of each column that has one, in the order of the columns.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for field in self.schema.fields() {
            if let Some(unit) = field.metadata().get("unit") {
                units.set_item(field.name(), unit)?;
            }
        }
        Ok(units)
    }

    /// The values of one column; None for absent ones. A column has a name and no number; rows come by iteration.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let name = column.cast::<PyString>().map_err(|_| {
            let text = "a column is asked for by its name; iterate over the table for its rows";
            PyTypeError::new_err(text)
        })?;
        let unknown = |_| {
            let known = self.columns().join(", ");
            PyKeyError::new_err(format!("no column `{name}`; the columns are {known}"))
        };
        let index = self.schema.index_of(name.to_str()?).map_err(unknown)?;
        let values = PyList::empty(py);
        for batch in self.reader() {
            let batch = batch.map_err(|error| wrong(&error))?;
            let array = batch.column(index);
            for row in 0..array.len() {
                values.append(cell(py, array, row)?)?;
            }
        }
        Ok(values)
    }

    /// True if the table has a column of this name.
    fn __contains__(&self, column: &Bound<'_, PyAny>) -> bool {
        column.extract::<String>().is_ok_and(|name| self.schema.index_of(&name).is_ok())
    }

    /// The rows, each as a dictionary from the names of the columns; None for absent values.
    fn __iter__(&self) -> RowIterator {
        let rows = Rows { reader: self.reader(), batch: None, next: 0 };
        RowIterator { names: self.columns(), rows: Mutex::new(rows) }
    }

    /// Makes a table of columns, each a list of numbers, texts and None of one length, and of their units.
    #[staticmethod]
    #[pyo3(signature = (columns: "dict[str, list[object]]", units))]
    fn of_columns(columns: &Bound<'_, PyDict>, units: HashMap<String, String>) -> PyResult<Self> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (name, values) in columns {
            let name: String = name.extract()?;
            let values = values.cast::<PyList>()?;
            let array: ArrayRef = match units.get(&name).map(String::as_str) {
                // A column without values has the type of its unit, so that the tables of two results have the same schema.
                Some("name") if values.is_empty() => Arc::new(StringArray::from(Vec::<&str>::new())),
                Some("ps" | "frames" | "bytes") if values.is_empty() => {
                    Arc::new(Int64Array::from(Vec::<i64>::new()))
                }
                _ => array(&name, values)?,
            };
            let unit = units.get(&name).map(|unit| HashMap::from([("unit".to_owned(), unit.clone())]));
            let field = Field::new(&name, array.data_type().clone(), true);
            fields.push(field.with_metadata(unit.unwrap_or_default()));
            arrays.push(array);
        }
        let metadata: HashMap<_, _> =
            units.into_iter().map(|(name, unit)| (format!("fanin.unit.{name}"), unit)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| wrong(&error))?;
        Ok(Self { schema, cells: Cells::Batch(batch) })
    }
}

fn rows_in_words(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

/// Goes through the rows of a table.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct RowIterator {
    names: Vec<String>,
    rows: Mutex<Rows>,
}

struct Rows {
    reader: Box<dyn RecordBatchReader + Send>,
    batch: Option<RecordBatch>,
    /// Index of the next row in the batch.
    next: usize,
}

#[pymethods]
impl RowIterator {
    /// The iterator itself, as Python wants it.
    fn __iter__(row: PyRef<'_, Self>) -> PyRef<'_, Self> {
        row
    }

    /// The next row.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut rows = self.rows.lock().expect("nothing panics while it holds this");
        loop {
            let row = rows.next;
            if let Some(batch) = rows.batch.as_ref().filter(|batch| row < batch.num_rows()) {
                let dictionary = PyDict::new(py);
                for (name, array) in self.names.iter().zip(batch.columns()) {
                    dictionary.set_item(name, cell(py, array, row)?)?;
                }
                rows.next += 1;
                return Ok(Some(dictionary));
            }
            let Some(batch) = rows.reader.next() else { return Ok(None) };
            rows.batch = Some(batch.map_err(|error| wrong(&error))?);
            rows.next = 0;
        }
    }
}

/// Converts a value to Python's form.
fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        _ => array.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
    }
}

/// Makes a column of the type that its values share. Whole numbers among other numbers become floats.
fn array(name: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let present = || values.iter().filter(|value| !value.is_none());
    if present().all(|value| value.is_instance_of::<PyInt>()) && present().next().is_some() {
        return Ok(Arc::new(values.extract::<Vec<Option<i64>>>()?.into_iter().collect::<Int64Array>()));
    }
    if present().all(|value| value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>()) {
        return Ok(Arc::new(values.extract::<Vec<Option<f64>>>()?.into_iter().collect::<Float64Array>()));
    }
    if present().all(|value| value.is_instance_of::<PyString>()) {
        return Ok(Arc::new(values.extract::<Vec<Option<String>>>()?.into_iter().collect::<StringArray>()));
    }
    Err(PyTypeError::new_err(format!("the values of column `{name}` are neither all numbers nor all texts")))
}

fn wrong(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
